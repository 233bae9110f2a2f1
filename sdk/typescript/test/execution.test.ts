/** What was agreed is carried out: delivered in parts, rejected, breached, disputed, decided and closed. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  accept, agent, commit, complete, deliver, digestOf, dispute, propose, reject, report, uphold, waive, type Act, type Agent, type Deal,
} from '../src/index.js';
import { Broker } from '../src/testing.js';
import { BUYER, SELLER } from './agents.js';

type Loose = Record<string, unknown>;
const ARBITER = 'agent://court.example/arbiter';

test('a commitment is carried out and disputed', { timeout: 60_000 }, async () => {
  await using broker = await Broker.start();
  const url = broker.url;
  const deadline = new Date(Date.now() + 3_600_000).toISOString();
  const obligations = [{ party: SELLER, action: 'deliver cups', quantity: 10, unit: 'box', deadline }];
  let id = '';
  let begun = (): void => undefined;
  const executing = new Promise<void>((resolve) => (begun = resolve));
  await using arbiter = agent<Loose>({ url, token: ARBITER });
  await arbiter.call('session.list', {});
  await using sells = agent<Loose>({ url, token: SELLER }).onInvitation((d) => accept(d.invitation!)).onTurn((d) => {
    if (d.theirOffer) return accept(d.theirOffer);
    const asked = d.open.find((i) => i.kind === 'commitment' && i.for.includes(d.me));
    return asked && accept(asked);
  }).start();
  await using buys = agent<Loose>({ url, token: BUYER }).onTurn((d) => {
    id = d.id;
    if (d.state === 'EXECUTING') {
      const made = d.commitment(d.agreed!)!;
      assert.deepEqual([made.mine, made.open, made.raw['terms']], [true, false, { obligations }]);
      begun();
    }
    // Asked again before the other side has accepted, it says the same, which commits once.
    return d.agreed && commit(d.agreed, { obligations });
  });
  const asked = buys.negotiate(SELLER, 'cups', propose({ price: 60 }), { policy: { arbiter: ARBITER } });
  await executing;
  const says = async (who: Agent<Loose>, make: (deal: Deal<Loose>) => Act): Promise<Deal<Loose>> => {
    await who.say(await who.deal(id), make(await who.deal(id)));
    return who.deal(id);
  };
  const owed = (d: Deal<Loose>) => d.obligations[0]!;
  const evidence = [{ kind: 'invoice', digest: await digestOf(new TextEncoder().encode('invoice')) }];

  await says(sells, (d) => report(owed(d), { packed: 4 }));
  let now = await says(sells, (d) => deliver(owed(d), { quantity: 5, evidence }));
  assert.deepEqual([owed(now).status, owed(now).delivery?.quantity, owed(now).delivery?.evidence], ['asserted', 5, evidence]);
  now = await says(buys, (d) => accept(owed(d).delivery!, { quantity: 4 }));
  assert.deepEqual([owed(now).status, owed(now).accepted, owed(now).remains], ['partial', 4, 6]);
  await says(sells, (d) => deliver(owed(d)));
  now = await says(buys, (d) => reject(owed(d).delivery!, 'they are broken', { code: 'mismatch' }));
  assert.deepEqual([owed(now).delivery, owed(now).remains], [undefined, 6]);

  await broker.advance('2h');
  now = await buys.deal(id);
  assert.equal(owed(now).breaches, 1);
  now = await says(buys, (d) => dispute(d.head, { ground: 'other', claim: 'six boxes are missing', severity: 3 }));
  assert.deepEqual(now.disputes.map((d) => [d.status, d.ground, d.severity]), [['open', 'other', 3]]);
  now = await says(arbiter, (d) => uphold(d.disputes[0]!, 'nothing came in time', { refund: '6 boxes' }));
  assert.equal(now.disputes[0]!.status, 'upheld');
  now = await says(buys, (d) => waive(owed(d), 'no longer needed'));
  assert.equal(owed(now).status, 'waived');
  now = await says(buys, () => complete());
  assert.deepEqual([now.state, now.outcome], ['CLOSED', 'completed']);
  assert.equal((await asked).entries.filter((e) => e.performative === 'COMMIT').length, 1);
});
