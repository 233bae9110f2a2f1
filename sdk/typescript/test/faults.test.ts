/** Kills, clocks, keys and servers that are not there: nothing is lost, and nothing is said twice. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { connect } from '@nats-io/transport-node';

import {
  accept, agent, answer, clarify, close, commit, complete, counter, delegate, escalate, isRefused, NoAnswer, observe, propose, query, reject, withdraw,
  type Act, type Agent, type Deal, type NegotiateOptions, type Refusal,
} from '../src/index.js';
import { nats } from '../src/nats.js';
import { HTTP } from '../src/http.js';
import { canonical } from '../src/json.js';
import { Signer } from '../src/sign.js';
import { Broker, Human } from '../src/testing.js';
import { verifyTranscript } from '../src/verify.js';
import { nodeWakeupHandler, wakeupHandler } from '../src/wakeup.js';
import { BUYER, buyer, COMPLIANCE, Cups, cups, nine, registered, SELLER, seller, transcript } from './agents.js';

const program = fileURLToPath(new URL('./buyer.js', import.meta.url));

interface Ran { code: number | null; signal: string | null; out: string }

function buys(url: string, as: string, dies: number): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [program], { env: { ...process.env, PARLEY_URL: url, PARLEY_TOKEN: as, DIES: `${dies}` } });
    let out = '';
    child.stdout.on('data', (data) => (out += String(data)));
    child.stderr.on('data', (data) => (out += String(data)));
    child.on('exit', (code, signal) => resolve({ code, signal, out }));
  });
}

test('an agent that dies at each step is gone on with', async () => {
  await using broker = await Broker.start();
  await using sells = seller({ url: broker.url }).start();
  for (let n = 1; ; n++) {
    const as = `${BUYER}-${n}`;
    const first = await buys(broker.url, as, n);
    const last = first.signal === 'SIGKILL' ? await buys(broker.url, as, 0) : first;
    assert.equal(last.code, 0, last.out);
    const [session, price] = last.out.trim().split(' ');
    assert.equal(price, '80');
    assert.deepEqual(await transcript(sells, session!), nine);
    if (first.code === 0) {
      assert.ok(n > 10);
      return;
    }
  }
});

test('a broker that dies loses nothing', async () => {
  await using broker = await Broker.start();
  await using sells = seller({ url: broker.url }).start();
  await using buyer = agent({ url: broker.url, token: BUYER, terms: Cups }).onTurn(async (deal) => {
    await broker.restart();
    if (deal.agreed) return complete();
    return deal.theirOffer!.terms.price > 85 ? counter(deal.theirOffer!, cups(deal.step(60, 100))) : accept(deal.theirOffer!);
  });
  const deal = await buyer.negotiate(SELLER, 'cups', cups(60));
  assert.equal(deal.agreed?.terms.price, 80);
  assert.deepEqual(await transcript(sells, deal.id), nine);
});

/** Negotiates, and sees that each act was said, and once. */
async function buysNine(buyer: Agent<Cups>, o: NegotiateOptions = {}): Promise<Deal<Cups>> {
  const deal = await buyer.negotiate(SELLER, 'cups', cups(60), o);
  assert.equal(deal.agreed?.terms.price, 80);
  assert.deepEqual(await transcript(buyer, deal.id), nine);
  return deal;
}

const times = (happened: string[], fault: string): number => happened.filter((f) => f === fault).length;

test('both sides lose the answer to each act, and decide each once', async () => {
  await using broker = await Broker.start();
  const { faults } = broker;
  await using sells = seller({ url: faults.url }).start();
  const decided: string[] = [];
  await using buys = buyer({ url: faults.url }, (deal) => decided.push(deal.head));
  faults.dropAnswers(nine.length);
  await buysNine(buys);
  assert.ok(sells);
  assert.deepEqual(faults.happened, nine.map(() => 'dropAnswers'));
  assert.equal(decided.length, 3);
  assert.equal(new Set(decided).size, 3);
});

test('what a program says itself survives the loss of its answer too: of all thirteen acts', async () => {
  await using broker = await Broker.start();
  const { faults } = broker;
  const [one, two, three] = [BUYER, SELLER, COMPLIANCE].map((token) => agent({ url: faults.url, token })) as [Agent<object>, Agent<object>, Agent<object>];
  await using alice = new Human(broker, 'human://acme.com/alice');
  faults.dropAnswers(100);
  const session = await one.open(SELLER, 'cups');
  const says = async (who: Agent<object>, decide: (deal: Deal<object>) => Act): Promise<Deal<object>> => {
    const deal = await who.deal(session);
    return who.say(deal, decide(deal));
  };
  await says(two, () => accept('invitation'));
  await says(one, () => propose({ price: 60 }));
  await says(two, (deal) => clarify(deal.theirOffer!, { 'terms.price': 'with tax?' }));
  await says(one, (deal) => answer(deal.questions[0]!, ['without']));
  await says(two, (deal) => counter(deal.theirOffer!, { price: 70 }));
  await says(one, () => query('colour'));
  await says(one, () => observe('weather', 'sunny'));
  await says(one, (deal) => delegate(COMPLIANCE, { about: deal.theirOffer! }));
  await says(three, (deal) => answer(deal.check!, { assessment: 'fine' }));
  await says(one, (deal) => escalate(deal.theirOffer, { why: 'above 65' }));
  await alice.decides('approved');
  await says(one, (deal) => reject(deal.theirOffer!, 'too dear'));
  await says(one, () => propose({ price: 65 }));
  await says(one, (deal) => withdraw(deal.myOffer!));
  await says(one, () => commit(undefined, { obligations: [{ party: BUYER, action: 'visit' }] }));
  await says(two, () => close());
  const said = await transcript(one, session);
  assert.equal(new Set(said).size, 13);
  assert.equal(said.length, 13 + 2 + 2); // two more of PROPOSE, and of INFORM
  assert.equal(faults.happened.length, said.length - 1); // the human's is not said through the proxy
  await Promise.all([one, two, three].map((a) => a.close()));
});

test('news come again, to both sides', async () => {
  await using broker = await Broker.start();
  const { faults } = broker;
  await using sells = seller({ url: faults.url }).start();
  await using buys = buyer({ url: faults.url });
  faults.redeliver(100);
  for (const key of ['0', '1', '2']) await buysNine(buys, { key });
  assert.ok(sells && times(faults.happened, 'redeliver') >= 6);
});

test('calls come again, one after the other', async () => {
  await using broker = await Broker.start();
  const secret = `whsec_${Buffer.from('k'.repeat(24)).toString('base64')}`;
  await using asleep = seller({ url: broker.url });
  const answers = nodeWakeupHandler(asleep, { secret });
  const called: unknown[] = [];
  const server = createServer((request, response) => {
    called.push(request.headers['webhook-id']);
    void answers(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = await broker.faults.inFrontOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}/wake`);
  await asleep.call('wakeup.set', { url, secret });
  broker.faults.redeliver(100);
  await using buys = buyer({ url: broker.url });
  await buysNine(buys);
  assert.ok(times(broker.faults.happened, 'redeliver') > 0 && new Set(called).size < called.length);
  server.closeAllConnections();
  server.close();
});

test('three workers of each side lose answers, get news twice, and their broker dies; none of them fails', async () => {
  await using broker = await Broker.start();
  const { faults } = broker;
  const failed: unknown[] = [];
  const workers = [0, 1, 2].map(() => buyer({ url: faults.url }));
  const agents = [...workers, ...[0, 1, 2].map(() => seller({ url: faults.url }).start())];
  for (const a of agents) a.onError((error) => failed.push(error));
  faults.dropAnswers(30);
  faults.redeliver(30);
  const asked = workers.flatMap((w) => [0, 1, 2, 3].map((n) => buysNine(w, { key: `${n}` })));
  await Promise.race(asked);
  await faults.kill();
  assert.equal(new Set((await Promise.all(asked)).map((d) => d.id)).size, 4);
  assert.deepEqual(new Set(faults.happened), new Set(['dropAnswers', 'redeliver', 'kill']));
  assert.deepEqual(failed, []);
  await Promise.all(agents.map((a) => a.close()));
});

test('agents that start before their broker wait for it', async () => {
  await using broker = await Broker.start();
  await broker.kill();
  await using sells = seller({ url: broker.url }).start();
  await using buys = buyer({ url: broker.url });
  const asked = buysNine(buys);
  await broker.up();
  await asked;
  assert.ok(sells);
});

test('a broker that does not start says why', async () => {
  await using broker = await Broker.start();
  await broker.kill();
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(Number(new URL(broker.url).port), '127.0.0.1', resolve));
  await assert.rejects(broker.up(), /the broker does not start: .*address already in use/s);
  taken.close();
});

test('an offer that repeats another is refused, and not taken for what was said before', async () => {
  await using broker = await Broker.start();
  await using asks = agent({ url: broker.url, token: SELLER })
    .onInvitation(() => accept('invitation'))
    .onTurn((deal) => (deal.entries.length === 3 ? query('when') : undefined))
    .start();
  await using buys = agent({ url: broker.url, token: BUYER }).onTurn(() => propose({ price: 60 }));
  const refused = new Promise<Refusal>((resolve) => buys.onRefused((_deal, _decision, refusal) => resolve(refusal)));
  const deal = await buys.negotiate(SELLER, 'cups', propose({ price: 60 }), { timeout: 1000 });
  assert.equal((await refused).code, 'duplicate');
  assert.equal((await transcript(asks, deal.id)).length, 4);
});

test('an offer that expires meanwhile is decided again, on what there is then', async () => {
  await using broker = await Broker.start();
  await using sells = agent({ url: broker.url, token: SELLER })
    .onInvitation(() => accept('invitation'))
    .onTurn((deal) => {
      if (deal.agreed || !deal.theirOffer) return undefined;
      const validUntil = new Date(Date.now() + 3_600_000).toISOString();
      return counter(deal.theirOffer, cups(90), { also: { validUntil } });
    })
    .start();
  const wrong: unknown[] = [];
  let expired = (): void => undefined;
  const late = new Promise<void>((resolve) => (expired = resolve));
  await using buys = agent({ url: broker.url, token: BUYER, terms: Cups })
    .onTurn(async (deal) => {
      if (deal.agreed) return complete();
      if (deal.theirOffer!.expires) {
        await broker.advance('2h');
        expired();
      }
      return accept(deal.theirOffer!);
    })
    .onError((error) => wrong.push(error))
    .onRefused((_deal, _decision, refusal) => wrong.push(refusal));
  const asked = buys.negotiate(SELLER, 'cups', cups(60));
  await late;
  const { sessions } = (await sells.call('session.list', {})) as { sessions: { sessionId: string }[] };
  await sells.say(await sells.deal(sessions[0]!.sessionId), propose(cups(70), { subject: 'cups' }));
  const deal = await asked;
  assert.equal(deal.agreed?.terms.price, 70);
  assert.equal(times(await transcript(buys, deal.id), 'ACCEPT'), 2);
  assert.deepEqual(wrong, []);
});

test('own keys sign, over NATS and over HTTP, with a clock ten minutes off, and each answer is lost', async () => {
  await using broker = await Broker.start({ dev: false });
  const [b, s] = [await registered(broker, BUYER), await registered(broker, SELLER)];
  const { faults } = broker;
  await using sells = seller({ transport: nats({ connect, servers: faults.natsUrl, ...s }) }).start();
  const overNats = nats({ connect, servers: faults.natsUrl, ...b });
  const overHttp = new HTTP(faults.url, b.token, new Signer(BUYER, b.seed), BUYER);
  for (const [key, transport] of Object.entries({ overNats, overHttp })) {
    transport.skew(600_000);
    faults.dropAnswers(9);
    faults.redeliver(9);
    await using a = buyer({ transport });
    const deal = await buysNine(a, { key });
    const { messages } = (await sells.call('session.messages', { sessionId: deal.id })) as { messages: unknown[] };
    const record = messages.map(canonical).join('\n');
    assert.deepEqual(await verifyTranscript(record, broker.key, { length: 9, head: deal.head }), []);
    assert.notDeepEqual(await verifyTranscript(record.replace('"price":60', '"price":61'), broker.key), []);
  }
  await using wrong = agent({ url: broker.url, token: `${b.token.slice(0, -4)}aaaa` });
  await assert.rejects(wrong.call('session.list', {}), (error) => isRefused(error, 'unauthorized') && !String(error).includes(b.token.slice(0, -4)));
  await assert.rejects(wrong.run(), (error) => isRefused(error, 'unauthorized')); // and it does not go on
  for (const login of [b.seed, s.login]) { // one that nobody knows, and another agent's
    const unknown = nats({ connect, servers: broker.natsUrl, ...b, login });
    await assert.rejects(unknown.call('session.list', {}), (error) => isRefused(error, 'unauthorized'));
    await unknown.close();
  }
  await using forged = agent({ url: broker.url, token: b.token, agent: BUYER, seed: s.seed });
  await assert.rejects(forged.negotiate(SELLER, 'forged', undefined, { timeout: 10_000 }), (error) => isRefused(error, 'signature_invalid'));
  await assert.rejects(new HTTP('http://127.0.0.1:1', 't').call('session.list', {}), NoAnswer);
  await assert.rejects(nats({ connect, servers: 'nats://127.0.0.1:1', ...b }).call('session.list', {}), NoAnswer);
  assert.ok(times(faults.happened, 'dropAnswers') === 18 && times(faults.happened, 'redeliver') > 0);
});

test('a broker of another contract is refused before anything is said to it', async () => {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.end('{"name": "parley", "version": "9.0.0", "contract": 2}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await using a = agent({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: BUYER });
  await assert.rejects(a.call('session.list', {}), (error) => isRefused(error, 'version_unsupported'));
  assert.deepEqual(asked, ['/v1/asp']);
  server.closeAllConnections();
  server.close();
});

test('calls wake an agent up, and forged ones are refused', async () => {
  await using broker = await Broker.start();
  await using asleep = seller({ url: broker.url });
  const secret = `whsec_${Buffer.from('k'.repeat(24)).toString('base64')}`;
  const answers = wakeupHandler(asleep, { secret });
  const post = async (body: string, signed = body, at = Math.floor(Date.now() / 1000)): Promise<number> => {
    const signature = createHmac('sha256', 'k'.repeat(24)).update(`id.${at}.${signed}`).digest('base64');
    const headers = { 'webhook-id': 'id', 'webhook-timestamp': `${at}`, 'webhook-signature': `v1,AAAA v1,${signature}` };
    return (await answers(new Request('http://localhost/', { method: 'POST', body, headers }))).status;
  };
  await using buys = buyer({ url: broker.url });
  const asked = buys.negotiate(SELLER, 'cups', cups(60));
  let over = false;
  void asked.finally(() => (over = true));
  while (!over) {
    const { sessions } = (await buys.call('session.list', {})) as { sessions: { sessionId: string }[] };
    const body = JSON.stringify({ sessionId: sessions[0]?.sessionId });
    if (sessions[0]) {
      assert.equal(await post(body), 204);
      assert.equal(await post(body, `${body} `), 401);
      assert.equal(await post(body, body, Math.floor(Date.now() / 1000) - 400), 401);
    }
    await buys.call('turn.wait', { seconds: 0.1 });
  }
  assert.equal((await asked).agreed?.terms.price, 80);
});
