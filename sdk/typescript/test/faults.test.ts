/** Kills, clocks, keys and servers that are not there: nothing is lost, and nothing is said twice. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { connect } from '@nats-io/transport-node';

import { accept, agent, complete, counter, isRefused, NoAnswer } from '../src/index.js';
import { nats } from '../src/nats.js';
import { HTTP } from '../src/http.js';
import { canonical } from '../src/json.js';
import { Signer } from '../src/sign.js';
import { Broker } from '../src/testing.js';
import { verifyTranscript } from '../src/verify.js';
import { wakeupHandler } from '../src/wakeup.js';
import { BUYER, buyer, Cups, cups, nine, registered, SELLER, seller, transcript } from './agents.js';

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

test('own keys sign, over NATS and over HTTP, with a clock ten minutes off', async () => {
  await using broker = await Broker.start({ dev: false });
  const [b, s] = [await registered(broker, BUYER), await registered(broker, SELLER)];
  await using sells = seller({ transport: nats({ connect, servers: broker.natsUrl, ...s }) }).start();
  const overNats = nats({ connect, servers: broker.natsUrl, ...b });
  const overHttp = new HTTP(broker.url, b.token, new Signer(BUYER, b.seed), BUYER);
  for (const [key, transport] of Object.entries({ overNats, overHttp })) {
    transport.skew(600_000);
    await using a = buyer({ transport });
    const deal = await a.negotiate(SELLER, 'cups', cups(60), { key });
    assert.equal(deal.agreed?.terms.price, 80);
    assert.deepEqual(await transcript(sells, deal.id), nine);
    const { messages } = (await sells.call('session.messages', { sessionId: deal.id })) as { messages: unknown[] };
    const record = messages.map(canonical).join('\n');
    assert.deepEqual(await verifyTranscript(record, broker.key, { length: 9, head: deal.head }), []);
    assert.notDeepEqual(await verifyTranscript(record.replace('"price":60', '"price":61'), broker.key), []);
  }
  await using wrong = agent({ url: broker.url, token: `${b.token.slice(0, -4)}aaaa` });
  await assert.rejects(wrong.call('session.list', {}), (error) => isRefused(error, 'unauthorized') && !String(error).includes(b.token.slice(0, -4)));
  await using forged = agent({ url: broker.url, token: b.token, agent: BUYER, seed: s.seed });
  await assert.rejects(forged.negotiate(SELLER, 'forged', undefined, { timeout: 10_000 }), (error) => isRefused(error, 'signature_invalid'));
  await assert.rejects(new HTTP('http://127.0.0.1:1', 't').call('session.list', {}), NoAnswer);
  await assert.rejects(nats({ connect, servers: 'nats://127.0.0.1:1', ...b }).call('session.list', {}), NoAnswer);
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
