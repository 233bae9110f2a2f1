/** The snippets of RECIPES.md compile, and run as they are written. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

import { propagation } from '@opentelemetry/api';

import { accept, commit, counter, type Agent, type Deal } from '../src/index.js';
import { Broker, Counterparty, Human } from '../src/testing.js';
import { BUYER, COMPLIANCE, Cups, cups, SELLER, seller } from './agents.js';

interface Recipe {
  agent: Agent<Cups>;
  cheapest: (sellers: string[], until: Date) => Promise<Deal<Cups>[]>;
  POST: (request: Request) => Promise<Response>;
  server: Server;
  register?: (url: string) => Promise<unknown>;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const dir = join(root, 'dist-test/recipes'); // within the package, so that its own name is found
const left = new Set<string>();
const vitest = 'Test-with-a-real-broker-0'; // which .ci/sdk-typescript runs with vitest
let loads = 0;

before(async () => {
  const [intro, ...sections] = (await readFile(join(root, '../RECIPES.md'), 'utf8')).split('\n## ') as [string, ...string[]];
  const snippets = (text: string): string[] => [...text.matchAll(/```ts\n([^]*?)```/g)].map((m) => m[1]!);
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true });
  for (const section of sections) {
    for (const [n, snippet] of snippets(section).entries()) {
      const name = `${section.split('\n')[0]!.replaceAll(/\W+/g, '-')}-${n}`;
      await writeFile(join(dir, name === vitest ? 'kit.test.ts' : `${name}.ts`), `${snippets(intro)[0]}${snippet}${/ as agent\b/.test(snippet) ? '' : 'export { agent };\n'}`);
      left.add(name);
    }
  }
  const strict = ['--strict', '--target', 'es2022', '--module', 'nodenext', '--lib', 'es2023,dom,esnext.disposable', '--types', 'node', '--skipLibCheck'];
  const files = [...left].filter((name) => name !== vitest).map((name) => join(dir, `${name}.ts`));
  await promisify(execFile)('npx', ['--no-install', 'tsc', ...strict, ...files], { cwd: root }).catch((error: { stdout: string }) => assert.fail(error.stdout));
});

after(() => assert.deepEqual([...left], [vitest]));

async function load(broker: Broker, name: string, token = BUYER): Promise<Recipe> {
  left.delete(name);
  Object.assign(process.env, { PARLEY_URL: broker.url, PARLEY_TOKEN: token });
  return (await import(`${pathToFileURL(join(dir, `${name}.js`)).href}?${loads++}`)) as Recipe;
}

test('a ladder', async () => {
  await using broker = await Broker.start();
  await using sells = seller({ url: broker.url }).start();
  await using buys = (await load(broker, 'Haggle-on-a-ladder-0')).agent;
  const deal = await buys.negotiate(SELLER, 'cups', cups(60));
  assert.deepEqual([deal.outcome, deal.agreed?.terms.price], ['completed', 80]);
  assert.ok(sells);
});

for (const decision of ['approved', 'denied'] as const) {
  test(`an approval: ${decision}`, async () => {
    await using broker = await Broker.start();
    await using other = new Counterparty(broker, SELLER).offers(cups(75));
    await using alice = new Human(broker, 'human://acme.com/alice');
    await using buys = (await load(broker, 'Have-a-human-approve-0')).agent;
    const asked = buys.negotiate(SELLER, 'cups', cups(60)).catch(() => undefined); // which is denied is not over
    await alice.decides(decision);
    let deals: Deal<Cups>[] = [];
    while (!deals.some((d) => d.agreed || d.offers.some((o) => o.status === 'rejected'))) {
      await buys.call('turn.wait', { seconds: 1 });
      const { sessions } = (await buys.call('session.list', {})) as { sessions: { sessionId: string }[] };
      deals = await Promise.all(sessions.map((row) => buys.deal(row.sessionId)));
    }
    assert.equal(deals[0]!.agreed !== undefined, decision === 'approved');
    await buys.close();
    await asked;
    assert.ok(other);
  });
}

test('a check', async () => {
  await using broker = await Broker.start();
  await using other = new Counterparty(broker, SELLER).offers(cups(75));
  await using colleague = (await load(broker, 'Have-a-colleague-check-1', COMPLIANCE)).agent.start();
  await using buys = (await load(broker, 'Have-a-colleague-check-0')).agent;
  const deal = await buys.negotiate(SELLER, 'cups', cups(60));
  assert.ok(deal.agreed && other && colleague);
  assert.deepEqual(deal.delegation(COMPLIANCE)?.result, { fine: true });
});

test('a deadline', async () => {
  await using broker = await Broker.start();
  await using sells = seller({ url: broker.url }).onTurn((deal) => {
    const validUntil = new Date(Date.now() + 302_000).toISOString();
    return deal.agreed ? undefined : counter(deal.theirOffer!, cups(75), { also: { validUntil } });
  }).start();
  await using buys = (await load(broker, 'Wait-for-a-deadline-0')).agent;
  assert.ok((await buys.negotiate(SELLER, 'cups', cups(60))).agreed?.expires);
  assert.ok(sells);
});

test('a tender', async () => {
  await using broker = await Broker.start();
  await using dear = new Counterparty(broker, SELLER).offers(cups(75));
  await using cheap = new Counterparty(broker, 'agent://cheap.co/seller').offers(cups(70));
  const recipe = await load(broker, 'Ask-several-sellers-0');
  await using buys = recipe.agent;
  const deals = await recipe.cheapest([dear.uri, cheap.uri], new Date(Date.now() + 60_000));
  assert.deepEqual(deals.map((d) => [d.counterparty, d.agreed !== undefined, d.over]), [[cheap.uri, true, false], [dear.uri, false, true]]);
  assert.ok(buys);
});

/** Has a recipe, which answers calls at a server, sell, and refuse a call that is not signed. */
async function sold(name: string, serves: (recipe: Recipe) => Server): Promise<void> {
  await using broker = await Broker.start();
  const secret = (process.env['WAKEUP_SECRET'] = `whsec_${Buffer.from('k'.repeat(24)).toString('base64')}`);
  const recipe = await load(broker, name, SELLER);
  await using sells = recipe.agent.onInvitation((deal) => accept(deal.invitation!)).onTurn((deal) => (deal.agreed ? undefined : accept(deal.theirOffer!)));
  const server = serves(recipe);
  if (!server.listening) await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/wake`;
  await (recipe.register ?? ((at) => sells.call('wakeup.set', { url: at, secret })))(url);
  await using buys = (await load(broker, 'Haggle-on-a-ladder-0')).agent;
  assert.equal((await buys.negotiate(SELLER, 'cups', cups(60))).agreed?.terms.price, 60);
  assert.equal((await fetch(url, { method: 'POST', body: '{}' })).status, 401);
  server.closeAllConnections();
  server.close();
}

test('a seller that is only called sells, as a route of Next', () => sold('Sleep-and-be-called-0', ({ POST }) => createServer((request, response) => {
  void text(request).then(async (body) => {
    const answer = await POST(new Request('http://x/', { method: 'POST', body, headers: request.headers as Record<string, string> }));
    response.writeHead(answer.status).end();
  });
}).listen(0, '127.0.0.1')));

test('a seller that is only called sells, in Express', () => sold('Sleep-and-be-called-1', ({ server }) => server));

test('a seller that is only called sells, in Hono', () => sold('Sleep-and-be-called-2', ({ server }) => server));

test('a commitment that is carried out', async () => {
  await using broker = await Broker.start();
  await using sells = (await load(broker, 'Commit-deliver-pay-1', SELLER)).agent.onInvitation((deal) => accept(deal.invitation!)).start();
  await using buys = (await load(broker, 'Commit-deliver-pay-0')).agent;
  const deal = await buys.negotiate(SELLER, 'cups', cups(60));
  assert.deepEqual([deal.outcome, deal.obligations.map((o) => o.status)], ['completed', ['fulfilled']]);
  assert.equal(deal.entries.filter((e) => e.performative === 'COMMIT').length, 1);
  assert.ok(sells);
});

test('a dispute', async () => {
  await using broker = await Broker.start();
  const arbiter = 'agent://court.example/arbiter';
  await using buys = (await load(broker, 'Dispute-0')).agent;
  await using sells = (await load(broker, 'Dispute-0', SELLER)).agent;
  await using court = (await load(broker, 'Dispute-0', arbiter)).agent;
  await court.call('session.list', {});
  const session = await buys.open(SELLER, 'cups', cups(60), { policy: { arbiter } });
  await sells.say(await sells.deal(session), accept('invitation'));
  let deal = await buys.reduce(session);
  deal = await sells.say(await sells.deal(session), accept(deal.myOffer!));
  const deadline = new Date(Date.now() + 3_600_000).toISOString();
  deal = await buys.say(await buys.deal(session), commit(deal.agreed, { obligations: [{ party: SELLER, action: 'deliver cups', deadline }] }));
  await sells.say(await sells.deal(session), accept(deal.commitment(deal.agreed!)!));
  await broker.advance('2h');
  const statuses: string[] = [];
  for (const who of [buys, sells, buys]) statuses.push((await who.reduce(session)).disputes[0]!.status);
  assert.deepEqual(statuses, ['open', 'open', 'agreed']);
});

test('a trace', async () => {
  const traceparent = `00-${'1'.repeat(32)}-${'1'.repeat(16)}-01`;
  const asked: [path: string | undefined, trace: unknown][] = [];
  const server = createServer((request, response) => {
    asked.push([request.url, request.headers['traceparent']]);
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  propagation.setGlobalPropagator({ inject: (_, carrier, setter) => setter.set(carrier, 'traceparent', traceparent), extract: (given) => given, fields: () => [] });
  await using buys = (await load({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } as Broker, 'Join-a-trace-0')).agent;
  await buys.call('session.list', {});
  propagation.disable();
  server.closeAllConnections();
  server.close();
  assert.deepEqual(asked, [['/v1/asp', undefined], ['/v1/asp/sessions', traceparent]]);
});

test('another version', async () => {
  await using broker = await Broker.start();
  await using buys = (await load(broker, 'Change-versions-0')).agent;
  await buys.open(SELLER, 'cups');
  await buys.call('schema.get', { name: 'acme-cups-v2' });
  await assert.rejects(buys.call('schema.get', { name: 'acme-cups-v1' }), { code: 'schema_unsupported' });
});
