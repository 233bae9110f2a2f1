/** Agents negotiate in every mode, hosted and with keys of their own. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect } from '@nats-io/transport-node';

import { verifyAgreement } from '../src/agreement.js';
import { accept, agent, commit, complete, counter, propose, type Agent, type AgentOptions } from '../src/index.js';
import { nats } from '../src/nats.js';
import { Broker } from '../src/testing.js';
import { BUYER, Cups, cups, registered, SELLER, transcript } from './agents.js';

const assessed = (mode: string): { also?: Record<string, unknown> } =>
  mode === 'bilateral/1' ? { also: { assessment: { reasoning: 'it fits', suggestedRoles: { ownUser: 'patient', otherUser: 'agent' } } } } : {};

/** Concedes by 20 a round, down or up to its best, and takes what is no worse. */
function party(mode: string, best: number, options: AgentOptions<Cups>): Agent<Cups> {
  return agent({ terms: Cups, ...options })
    .onInvitation((deal) => accept(deal.invitation!))
    .onTurn((deal) => {
      const [offer, mine, sells] = [deal.theirOffer, deal.myOffer, deal.role === 'invitee'];
      if (deal.agreed) return !sells && deal.allows('CLOSE') ? complete() : undefined;
      if (mode === 'convergent/1' && deal.allows('COMMIT')) return commit((mine ?? offer)!);
      if (mine) { // of convergent/1, whose authors accept their own offers, too
        const accepted = deal.news.some((e) => e.performative === 'ACCEPT' && e.content.body['referenceId'] === mine.id);
        return accepted && deal.allows('ACCEPT', mine) ? accept(mine) : undefined;
      }
      if (!offer) return undefined;
      const { price } = offer.terms;
      if (sells ? price >= best : price <= best) return accept(offer, assessed(mode));
      return counter(offer, cups(sells ? Math.max(best, 120 - 20 * deal.round) : Math.min(best, 60 + 20 * deal.round)), assessed(mode));
    });
}

for (const mode of ['asp/1', 'bilateral/1', 'convergent/1', 'binding/1']) {
  test(`hosted agents in ${mode}`, async () => {
    await using broker = await Broker.start();
    await using sells = party(mode, 80, { url: broker.url, token: SELLER }).start();
    await using buys = party(mode, 100, { url: broker.url, token: BUYER });
    const deal = await buys.negotiate(SELLER, 'cups', propose(cups(60), { subject: 'cups', ...assessed(mode) }), { mode, timeout: 20_000 });
    assert.ok(deal.over && [80, 100].includes(deal.agreed?.terms.price ?? 0), `${deal.state} ${await transcript(sells, deal.id)}`);
  });
}

test('in binding/1 each party signs the agreement itself: one over NATS, one over HTTP', async () => {
  await using broker = await Broker.start({ dev: false });
  const [b, s] = [await registered(broker, BUYER), await registered(broker, SELLER)];
  await using sells = party('binding/1', 80, { url: broker.url, agent: SELLER, seed: s.seed, token: s.token }).start();
  await using buys = party('binding/1', 100, { transport: nats({ connect, servers: broker.natsUrl, ...b }) });
  const deal = await buys.negotiate(SELLER, 'cups', cups(60), { mode: 'binding/1', timeout: 30_000 });
  assert.ok(deal.over && deal.agreed, deal.state);
  const { agreements } = (await sells.call('agreement.list', {})) as { agreements: { agreementId: string }[] };
  const report = await verifyAgreement((await sells.call('agreement.get', { agreementId: agreements[0]!.agreementId })) as object, { broker: broker.key });
  assert.deepEqual([report.faults, report.proves], [[], 'signatures']);
});
