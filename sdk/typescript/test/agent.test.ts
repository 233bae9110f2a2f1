/** Conversations of agents with each other, through a real broker. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';

import { accept, agent, answer, close, complete, counter, delegate, escalate, NoAnswer, NotAllowed, ParleyError, propose, Refusal, reject, TenderError, TermsError, wait, withdraw } from '../src/index.js';
import { HTTP } from '../src/http.js';
import { nats } from '../src/nats.js';
import { Broker, Counterparty, Human } from '../src/testing.js';
import { negotiationTools } from '../src/tools.js';
import { BUYER, buyer, COMPLIANCE, Cups, cups, nine, SELLER, seller, transcript } from './agents.js';

test('two agents agree', async () => {
  await using broker = await Broker.start();
  await using sells = seller({ url: broker.url }).start();
  await using buys = buyer({ url: broker.url });
  const deal = await buys.negotiate(SELLER, 'cups', cups(60));
  assert.equal(deal.agreed?.terms.price, 80);
  assert.equal(deal.outcome, 'completed');
  assert.deepEqual(await transcript(sells, deal.id), nine);
  for (const answers of [accept(deal.theirOffer!), counter(deal.theirOffer!, cups(1)), withdraw('')]) {
    const says = `${answers.performative} names no offer: theirOffer is undefined while none of another side is open; allowed: nothing`;
    await assert.rejects(buys.say(deal, answers), (error) => error instanceof NotAllowed && error.reason === says);
  }
  assert.equal((await buys.negotiate(SELLER, 'cups', cups(60))).id, deal.id);
  assert.ok((await buys.find()).some((card) => card.agentId === SELLER));
});

test('a tender goes on without whom the broker refuses, and says so', async () => {
  await using broker = await Broker.start();
  await using sells = seller({ url: broker.url }).start();
  await using buys = buyer({ url: broker.url });
  await assert.rejects(buys.tender(['nobody', SELLER], 'cups', cups(60)), (error: TenderError<Cups>) => {
    assert.match(error.message, /^1 of 2 failed, the others are in deals: nobody: schema_invalid: /);
    assert.deepEqual(error.deals.map((d) => [d.counterparty, d.agreed?.terms.price]), [[SELLER, 80]]);
    return error instanceof TenderError && error.failed.get('nobody') instanceof Refusal;
  });
  await assert.rejects(buys.tender(['nobody'], 'cups', cups(60)), Refusal);
  assert.ok(sells);
});

test('a colleague checks, and a human approves, once each', async () => {
  await using broker = await Broker.start();
  await using sells = seller({ url: broker.url }, 95).start();
  await using colleague = agent({ url: broker.url, token: COMPLIANCE, terms: Cups })
    .onCheck((deal) => answer(deal.check!, { assessment: 'fine' }))
    .start();
  await using alice = new Human(broker, 'human://acme.com/alice');
  await using buys = agent({ url: broker.url, token: BUYER, terms: Cups }).onTurn((deal) => {
    if (deal.agreed) return complete();
    const offer = deal.theirOffer!;
    if (offer.terms.price > 110) return counter(offer, cups(deal.step(60, 100)));
    const check = deal.delegation(COMPLIANCE, offer);
    if (!check) return delegate(COMPLIANCE, { about: offer });
    if (!check.result) return wait(check);
    const approval = deal.approval(offer);
    if (offer.terms.price > 90 && !approval?.granted) return approval?.decision ? reject(offer, 'above 90') : escalate(offer, { why: 'above 90' });
    return accept(offer);
  });
  const asked = buys.negotiate(SELLER, 'cups', cups(60));
  await alice.decides('approved');
  const deal = await asked;
  assert.equal(deal.agreed?.terms.price, 105);
  const acts = await transcript(sells, deal.id);
  assert.deepEqual(['DELEGATE', 'ESCALATE', 'CLOSE'].map((a) => acts.filter((b) => b === a).length), [1, 1, 1]);
  assert.ok(colleague);
});

test('the answer about one offer is none about the next', async () => {
  await using broker = await Broker.start();
  await using sells = agent({ url: broker.url, token: SELLER, terms: Cups })
    .onInvitation((deal) => accept(deal.invitation!))
    .onTurn((deal) => (deal.agreed || deal.myOffer ? undefined : counter(deal.theirOffer!, cups(80))))
    .start();
  await using colleague = agent({ url: broker.url, token: COMPLIANCE, terms: Cups })
    .onCheck((deal) => {
      if (deal.check!.status === 'offered') return accept(deal.check!);
      const about = deal.offers.find((o) => o.id === deal.check!.about);
      return about?.terms.price === 80 ? undefined : answer(deal.check!, { fine: true }); // it takes its time
    })
    .start();
  await using buys = agent({ url: broker.url, token: BUYER, terms: Cups }).onTurn((deal) => {
    if (deal.agreed) return complete();
    const offer = deal.theirOffer!;
    const check = deal.delegation(COMPLIANCE, offer);
    if (!check) return delegate(COMPLIANCE, { about: offer });
    return check.result ? accept(offer) : wait(check);
  });
  const asked = buys.negotiate(SELLER, 'cups', cups(60));
  for (;;) {
    const { sessions } = (await sells.call('session.list', {})) as { sessions: { sessionId: string }[] };
    const at = sessions[0] && (await sells.deal(sessions[0].sessionId));
    if (at?.myOffer && at.entries.at(-1)?.performative === 'ACCEPT') {
      await sells.say(at, propose(cups(85)));
      break;
    }
    await sells.call('turn.wait', { seconds: 1 });
  }
  const deal = await asked;
  assert.equal(deal.agreed?.terms.price, 85);
  const acts = await transcript(buys, deal.id);
  assert.deepEqual(acts.filter((a) => ['DELEGATE', 'WITHDRAW', 'INFORM'].includes(a)), ['DELEGATE', 'WITHDRAW', 'DELEGATE', 'INFORM']);
  assert.ok(colleague);
});

test('an offer that a human allows only otherwise is not granted', async () => {
  await using broker = await Broker.start();
  await using sells = seller({ url: broker.url }).start();
  await using alice = new Human(broker, 'human://acme.com/alice');
  await using buys = agent({ url: broker.url, token: BUYER, terms: Cups }).onTurn((deal) => {
    if (deal.agreed) return complete();
    const offer = deal.theirOffer!;
    const approval = deal.approval(offer);
    if (offer.terms.price > 90 && !approval?.granted) return approval?.decision ? counter(offer, cups(85)) : escalate(offer, { why: 'above 90' });
    return accept(offer);
  });
  const asked = buys.negotiate(SELLER, 'cups', cups(60));
  await alice.decides('modified', { authority: { bounds: [{ termPath: 'terms.price', max: 85 }] } });
  assert.equal((await asked).agreed?.terms.price, 85);
  assert.ok(sells);
});

test('three workers of each agent say nothing twice', async () => {
  await using broker = await Broker.start();
  const sellers = [0, 1, 2].map(() => seller({ url: broker.url }).start());
  const buyers = [0, 1, 2].map(() => buyer({ url: broker.url }));
  const deals = await Promise.all(buyers.flatMap((b) => [0, 1, 2, 3].map((n) => b.negotiate(SELLER, 'cups', cups(60), { key: `${n}` }))));
  assert.equal(new Set(deals.map((d) => d.id)).size, 4);
  for (const d of deals) assert.deepEqual(await transcript(buyers[0]!, d.id), nine);
  await Promise.all([...sellers, ...buyers].map((a) => a.close()));
});

for (const agrees of [true, false]) {
  test(`a worker that rests learns of an end by another worker, ${agrees ? 'once it agreed' : 'before'}`, { timeout: 60_000 }, async () => {
    await using broker = await Broker.start();
    let rests = (): void => undefined;
    const rested = new Promise<void>((resolve) => (rests = resolve));
    await using sells = seller({ url: broker.url }).start();
    await using two = agent({ url: broker.url, token: BUYER, terms: Cups });
    await using one = agent({ url: broker.url, token: BUYER, terms: Cups })
      .onTurn((deal) => (agrees && !deal.agreed ? accept(deal.theirOffer!) : rests()));
    const asked = one.negotiate(SELLER, 'cups', cups(60));
    await rested;
    const { sessions } = (await two.call('session.list', {})) as { sessions: { sessionId: string }[] };
    await two.say(await two.deal(sessions[0]!.sessionId), agrees ? complete() : close());
    assert.ok((await asked).over);
    assert.ok(sells);
  });
}

test('errors rest until there is news', async () => {
  await using broker = await Broker.start();
  const errors: unknown[] = [];
  let woken = (): void => undefined;
  await using buys = agent({ url: broker.url, token: BUYER, terms: Cups })
    .onTurn((deal) => {
      if (errors.length === 0) throw new RangeError('poison');
      if (errors.length === 1) return accept('nothing');
      if (errors.length === 2) return counter(deal.theirOffer!, { price: deal.theirOffer!.terms.price });
      return complete();
    })
    .onError((error) => {
      errors.push(error);
      woken();
    });
  await using other = agent({ url: broker.url, token: SELLER });
  const asked = buys.negotiate(SELLER, 'cups', cups(60));
  let sessions: { sessionId: string }[] = [];
  while (sessions.length === 0) {
    await other.call('turn.wait', { seconds: 1 });
    ({ sessions } = (await other.call('session.list', { awaiting: 'me' })) as { sessions: { sessionId: string }[] });
  }
  let deal = await other.say(await other.deal(sessions[0]!.sessionId), accept('invitation'));
  for (const price of [70, 71, 'dear', 72]) {
    while (deal.offers.length === 0) {
      await other.call('turn.wait', { seconds: 1 });
      deal = await other.deal(deal.id);
    }
    const again = new Promise<void>((resolve) => (woken = resolve));
    deal = await other.say(deal, propose({ price }, { subject: 'cups' }));
    if (price !== 72) await again;
  }
  assert.ok((await asked).over);
  assert.equal(errors.length, 3);
  assert.ok(errors[0] instanceof RangeError && errors[1] instanceof NotAllowed && errors[2] instanceof TermsError, String(errors));
});

test('an invitation that is withdrawn meanwhile harms nobody', async () => {
  await using broker = await Broker.start();
  let open = (): void => undefined;
  const slow = new Promise<void>((resolve) => (open = resolve));
  const errors: unknown[] = [];
  await using sells = agent({ url: broker.url, token: SELLER, terms: Cups })
    .onInvitation(async (deal) => {
      if (deal.purpose === 'withdrawn') await slow;
      return accept('invitation');
    })
    .onError((error) => errors.push(error))
    .onRefused((_deal, _decision, refusal) => errors.push(refusal))
    .start();
  await using buys = agent({ url: broker.url, token: BUYER });
  let deal = await buys.negotiate(SELLER, 'withdrawn', undefined, { timeout: 500 });
  deal = await buys.say(deal, withdraw('invitation'));
  open();
  assert.equal((await buys.negotiate(SELLER, 'lives', undefined, { timeout: 1500 })).state, 'INTRODUCED');
  assert.deepEqual(await transcript(buys, deal.id), ['PROPOSE', 'WITHDRAW']);
  assert.deepEqual(errors, []);
  assert.ok(sells);
});

test('a counterparty follows its script', async () => {
  await using broker = await Broker.start();
  await using other = new Counterparty(broker, SELLER).offers({ price: 120, currency: 'EUR' }).accepts();
  await using buys = buyer({ url: broker.url });
  const asked = buys.negotiate(SELLER, 'cups', cups(60));
  await other.expectsOffer({ price: 60 });
  await other.expectsOffer({ price: 70 });
  assert.equal((await asked).agreed?.terms.price, 70);
});

test('an invitation that nobody answers ends after a day', async () => {
  await using broker = await Broker.start();
  await using other = agent({ url: broker.url, token: SELLER });
  await using buys = buyer({ url: broker.url });
  const asked = buys.negotiate(SELLER, 'unanswered', cups(60));
  while (((await other.call('session.list', {})) as { sessions: unknown[] }).sessions.length === 0) await other.call('turn.wait', { seconds: 1 });
  await broker.advance('25h');
  const deal = await asked;
  assert.deepEqual([deal.state, deal.outcome], ['FAILED', 'invitation_timeout']);
  await assert.rejects(broker.advance('-1h'), RangeError);
});

test('an offer that lapsed is its author\'s turn', async () => {
  await using broker = await Broker.start();
  const statuses: string[] = [];
  await using other = agent({ url: broker.url, token: SELLER });
  await using buys = agent({ url: broker.url, token: BUYER, terms: Cups }).onTurn((deal) => {
    assert.ok(deal.lapsed && !deal.theirOffer);
    statuses.push(deal.offers.at(-1)!.status);
    return statuses.length === 1 ? propose(cups(70)) : close();
  });
  const validUntil = new Date(Date.now() + 3_600_000).toISOString();
  const session = await buys.open(SELLER, 'cups', propose(cups(60), { also: { validUntil } }));
  await other.say(await other.deal(session), accept('invitation'));
  assert.ok((await buys.reduce(session)).myOffer);
  await broker.advance('2h');
  assert.equal((await buys.reduce(session)).myOffer?.terms.price, 70);
  const deal = await other.deal(session);
  await other.say(deal, reject(deal.theirOffer!));
  assert.ok((await buys.reduce(session)).over);
  assert.deepEqual(statuses, ['expired', 'rejected']);
});

test('an end that is said outside a handler ends the negotiation', async () => {
  await using broker = await Broker.start();
  await using other = agent({ url: broker.url, token: SELLER });
  await using buys = agent({ url: broker.url, token: BUYER });
  const asked = buys.negotiate(SELLER, 'cups', { price: 60 });
  let sessions: { sessionId: string }[] = [];
  while (sessions.length === 0) {
    await other.call('turn.wait', { seconds: 1 });
    ({ sessions } = (await other.call('session.list', {})) as { sessions: { sessionId: string }[] });
  }
  await broker.advance('2h');
  await buys.say(await buys.deal(sessions[0]!.sessionId), withdraw('invitation'));
  assert.ok((await asked).over);
});

test('what is returned after an act has it, also while a handler works and older news come', async () => {
  await using broker = await Broker.start();
  const transport = new HTTP(broker.url, BUYER);
  const [call, say] = [transport.call.bind(transport), transport.say.bind(transport)];
  let [works, decides] = [(): void => undefined, (): void => undefined];
  const working = new Promise<void>((resolve) => (works = resolve));
  const decided = new Promise<void>((resolve) => (decides = resolve));
  await using other = agent({ url: broker.url, token: SELLER });
  await using buys = agent({ transport }).onInvitation(() => (works(), decided));
  const session = await other.open(BUYER, 'cups');
  const old = await call('session.snapshot', { sessionId: session, since: 0 });
  let come = (): void => undefined;
  const news = new Promise((resolve) => (come = () => resolve({ cursor: '0', snapshot: old })));
  transport.call = (verb, request, signal) => (verb === 'turn.wait' && request['seconds'] !== 0 ? news : call(verb, request, signal));
  transport.say = async (...act) => {
    const answer = await say(...act);
    transport.call = call;
    come();
    await setImmediate();
    return answer;
  };
  buys.start();
  await working;
  const deal = await buys.deal(session);
  assert.equal((await buys.say(deal, reject(deal.invitation!))).over, true);
  decides();
});

test('what is no URL of a broker is refused at once', async () => {
  const why = (error: unknown): boolean => error instanceof ParleyError && /set PARLEY_URL.*http:\/\/127\.0\.0\.1:8080/.test(error.message) && !/secret/.test(error.message);
  for (const url of ['', 'foo', '127.0.0.1:28081', 'localhost:8080', 'ftp://a', 'http://', 'http://a:99999', 'http://user:secret@a', 'http://:secret@a']) {
    assert.throws(() => agent({ url, token: BUYER }), why, url);
    await assert.rejects(negotiationTools({ url, token: BUYER }), why, url);
  }
  assert.throws(() => agent({ url: 'nats://user:secret@a', token: BUYER }), (error) => /nats\(/.test(String(error)) && !/secret/.test(String(error)));
  assert.throws(() => nats({ connect: () => Promise.reject(new Error()), servers: '', agent: BUYER, seed: '' }), /nats:\/\/127\.0\.0\.1:4222/);
});

test('a broker that is away is asked again, which is said once, and once that it is there', async (t) => {
  await using broker = await Broker.start();
  const warned = t.mock.method(console, 'warn', () => undefined);
  const transport = new HTTP(broker.url, BUYER);
  const call = transport.call.bind(transport);
  let [fails, answers] = [0, (): void => undefined];
  let failed = (): void => undefined;
  const thrice = new Promise<void>((resolve) => (failed = resolve));
  const answered = new Promise<void>((resolve) => (answers = resolve));
  transport.call = async (...asked) => {
    try {
      const answer = await call(...asked);
      answers();
      return answer;
    } catch (error) {
      if (error instanceof NoAnswer && ++fails === 3) failed();
      throw error;
    }
  };
  await broker.kill();
  await using away = agent({ transport });
  away.start();
  await thrice;
  await broker.up();
  await answered;
  await away.close();
  const said = warned.mock.calls.map((c) => String(c.arguments[0]));
  assert.equal(said.length, 2, said.join('\n'));
  assert.match(said[0]!, /PARLEY_URL.*GET http:\/\/127\.0\.0\.1:\d+\/v1\/asp: ECONNREFUSED/);
  assert.equal(said[1], 'parley: the broker answers again');
});

test('terms that JSON cannot say are refused before anything is sent', async () => {
  const wrong: [terms: unknown, path: RegExp][] = [
    [{ price: undefined }, /^terms\.price is undefined/],
    [{ lots: [{ price: 1 }, { price: Infinity }] }, /^terms\.lots\[1\]\.price is the number Infinity/],
    [{ price: NaN }, /^terms\.price is the number NaN/],
    [{ price: 10n }, /^terms\.price is the bigint 10, .*send it as text/],
    [{ count: 2 ** 53 }, /^terms\.count is the number 9007199254740992, .*send it as text/],
    [{ on: new Date() }, /^terms\.on is of class Date/],
    [{ of: new Map() }, /^terms\.of is of class Map/],
    [new Date(), /^terms is of class Date/],
    [['price', 60], /^terms is of class Array/],
    ['sixty', /^terms is the string sixty/],
    [{ lots: { '\ud83d': 1 } }, /^a name in terms\.lots is the string/],
    [{ note: 'half of \ud83d' }, /^terms\.note is the string half of/],
  ];
  await using buys = agent({ url: 'http://127.0.0.1:1', token: BUYER });
  for (const [terms, path] of wrong) {
    const why = (error: unknown): boolean => error instanceof TermsError && path.test(error.message);
    for (const first of [terms as object, propose(terms as object)]) {
      await assert.rejects(buys.negotiate(SELLER, 'cups', first as Record<string, unknown>), why);
      await assert.rejects(buys.open(SELLER, 'cups', first as Record<string, unknown>), why);
      await assert.rejects(buys.tender([SELLER, COMPLIANCE], 'cups', first as Record<string, unknown>), why);
    }
  }
});

test('negotiate does not outlast its timeout without a broker', { timeout: 30_000 }, async () => {
  await using buys = agent({ url: 'http://127.0.0.1:1', token: BUYER });
  await assert.rejects(buys.negotiate(SELLER, 'cups', { price: 60 }, { timeout: 100 }), NoAnswer);
});

test('terms of a handler are checked alike, and onError is called', async () => {
  await using broker = await Broker.start();
  let fails = (_: unknown): void => undefined;
  const failed = new Promise<unknown>((resolve) => (fails = resolve));
  await using sells = seller({ url: broker.url }).start();
  await using buys = agent({ url: broker.url, token: BUYER })
    .onTurn((deal) => counter(deal.theirOffer!, { price: 60, on: new Date() }))
    .onError((error) => fails(error));
  const asked = buys.negotiate(SELLER, 'cups', { price: 60 }).catch(() => undefined);
  assert.match(String(await failed), /^TermsError: terms\.on is of class Date/);
  await buys.close();
  await asked;
  assert.ok(sells);
});
