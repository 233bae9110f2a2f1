/** Acts and calls join the trace that the program names: spans of a real broker say so. */

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';

import { connect } from '@nats-io/transport-node';

import { accept } from '../src/index.js';
import { nats } from '../src/nats.js';
import { Broker } from '../src/testing.js';
import { negotiationTools } from '../src/tools.js';
import { traceOf } from '../src/trace.js';
import { BUYER, buyer, cups, nine, registered, SELLER, seller } from './agents.js';

const [ONE, TWO, THREE] = ['1', '2', '3'].map((n) => `00-${n.repeat(32)}-${n.repeat(16)}-01`) as [string, string, string];

const current = new AsyncLocalStorage<string | undefined>();
const traceparent = (): string | undefined => current.getStore();

let bodies: string[] = []; // of what a broker exports by OTLP
const collector = createServer((request, response) => void buffer(request).then((body) => {
  bodies.push(body.toString('latin1'));
  response.end();
}));

before(async () => {
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  Object.assign(process.env, { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '50', OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none' });
});

after(() => {
  collector.closeAllConnections();
  collector.close();
});

/** Names of the spans in the trace of a traceparent, below others. */
function joined(trace: string): string[] {
  const id = Buffer.from(trace.split('-')[1]!, 'hex').toString('latin1');
  const span = new RegExp(`\x0a\x10${id}\x12\x08.{8}\x22\x08.{8}\\*(.)`, 'gs'); // the fields 1 to 5 of OTLP's Span
  return bodies.flatMap((body) => [...body.matchAll(span)].map((m) => body.slice(m.index + m[0].length).slice(0, m[1]!.charCodeAt(0))));
}

/** Waits until a trace has a span, and its acts are these. */
async function has(trace: string, acts: string[], span = ''): Promise<void> {
  const said = (): string[] => joined(trace).filter((name) => name === name.toUpperCase()).sort();
  for (let n = 0; n < 400 && (said().length < acts.length || (span !== '' && !joined(trace).includes(span))); n++) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(said(), [...acts].sort());
  assert.ok(span === '' || joined(trace).includes(span), `${joined(trace)}`);
}

for (const over of ['HTTP', 'NATS']) {
  test(`one negotiation is one trace, over ${over}, whatever the agent was started in`, async () => {
    bodies = [];
    await using broker = await Broker.start({ dev: false });
    const [b, s] = [await registered(broker, BUYER), await registered(broker, SELLER)];
    await using sells = seller({ url: broker.url, agent: SELLER, seed: s.seed, token: s.token }).start();
    const way = over === 'HTTP' ? { url: broker.url, agent: BUYER, seed: b.seed, token: b.token } : { transport: nats({ connect, servers: broker.natsUrl, ...b }) };
    await using buys = buyer({ ...way, traceparent });
    current.run(THREE, () => buys.start());
    await Promise.all([ONE, TWO].map((key) => current.run(key, () => buys.negotiate(SELLER, 'cups', cups(60), { key }))));
    await current.run(`${ONE}\r\nCookie: x`, () => buys.find()); // which nobody could send
    await current.run(THREE, () => buys.find());
    for (const trace of [ONE, TWO]) {
      await has(trace, nine.filter((_, n) => n % 2 === 0), 'session.snapshot');
      assert.ok(!joined(trace).includes('turn.wait'));
    }
    await has(THREE, [], 'agent.search');
    assert.deepEqual(joined(THREE), ['agent.search']);
    assert.ok(sells);
  });
}

test('what the program says, and has reduced, joins its trace', async () => {
  bodies = [];
  await using broker = await Broker.start();
  await using buys = buyer({ url: broker.url, traceparent });
  await using sells = seller({ url: broker.url, traceparent });
  const session = await current.run(ONE, () => buys.open(SELLER, 'cups', cups(85)));
  await current.run(TWO, () => sells.reduce(session));
  await current.run(ONE, () => buys.reduce(session));
  const deal = await sells.deal(session);
  await current.run(THREE, () => sells.say(deal, accept(deal.theirOffer!)));
  assert.ok((await buys.reduce(session)).over);
  await has(TWO, ['ACCEPT']);
  await has(THREE, ['ACCEPT']);
  await has(ONE, ['PROPOSE', 'PROPOSE', 'CLOSE']);
});

test('tools join it, too', async () => {
  bodies = [];
  await using broker = await Broker.start();
  const tools = await negotiationTools({ url: broker.url, token: BUYER, traceparent: () => ONE });
  await tools.call('open_negotiation', { with: [SELLER], purpose: 'cups' });
  await has(ONE, ['PROPOSE']);
});

test('what is no traceparent', () => {
  for (const wrong of [undefined, '', '00', ONE.replaceAll('1', 'A'), `${ONE}\n`, `${ONE}-1`, ` ${ONE}`]) assert.equal(traceOf(() => wrong), undefined);
  assert.deepEqual([traceOf(() => ONE), traceOf(undefined)], [ONE, undefined]);
});
