/** The Vercel AI SDK: a chat is killed while its tool call has no result, and what goes on later says nothing twice. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { generateText, type ModelMessage } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { z } from 'zod';

import { negotiate, tools } from '../src/bridges/ai.js';
import { accept, agent, complete } from '../src/index.js';
import { Broker, Counterparty } from '../src/testing.js';
import { negotiationTools } from '../src/tools.js';
import { BUYER, cups, SELLER } from './agents.js';
import { buys } from './parked.js';

test('a chat that is killed while it is parked', async () => {
  await using broker = await Broker.start();
  const { said, session, again } = await buys(broker, 'ai-buyer', 'messages.json');
  const messages = JSON.parse(await readFile(join(broker.data, 'messages.json'), 'utf8')) as ModelMessage[];
  assert.deepEqual(messages.map((m) => m.role), ['user', 'assistant', 'tool', 'assistant']);
  const agreed = `<quote from="${SELLER}">\n{"currency":"EUR","price":95}\n</quote>`;
  assert.deepEqual(messages[2]!.content, [{
    type: 'tool-result',
    toolCallId: (messages[1]!.content[0] as { toolCallId: string }).toolCallId,
    toolName: 'negotiate',
    output: { type: 'json', value: { sessionId: session, outcome: 'completed', agreed } },
  }]);
  assert.ok(said.at(-1)!.includes('completed'));
  assert.equal(again, said.at(-1));
});

test('of two calls, the one that is over gets its result, in its place', async () => {
  await using broker = await Broker.start();
  await using buyer = agent({ url: broker.url, token: BUYER }).onTurn((deal) => (deal.agreed ? complete() : deal.theirOffer && accept(deal.theirOffer)));
  await using sells = new Counterparty(broker, SELLER).offers(cups(80));
  const { resume } = negotiate(buyer, (seller: string, key) => buyer.open(seller, 'cups', cups(60), { key }), { inputSchema: z.string() });
  const call = (toolCallId: string, input: string) => ({ type: 'tool-call', toolCallId, toolName: 'negotiate', input }) as const;
  const asked: ModelMessage[] = [
    { role: 'user', content: 'buy' },
    { role: 'assistant', content: [call('n', 'nonsense'), call('a', SELLER), call('b', 'agent://widgets.co/nobody')] },
    { role: 'user', content: 'well?' },
  ];
  const first = await resume(asked);
  const refused = (first.messages[2]!.content as { output: { type: string; value: string } }[])[0]!.output;
  assert.ok(refused.type === 'error-text' && refused.value.includes('schema_invalid'), JSON.stringify(refused));
  assert.deepEqual(first.parked.map((p) => p.toolCallId), ['a', 'b']);
  let next = first;
  while (next.parked.length > 1) {
    await buyer.call('turn.wait', { seconds: 0.2 });
    next = await resume(asked);
  }
  assert.deepEqual(next.parked.map((p) => [p.toolCallId, p.state]), [['b', 'INVITED']]);
  assert.deepEqual(next.messages.map((m) => m.role), ['user', 'assistant', 'tool', 'user']);
  assert.deepEqual((next.messages[2]!.content as { toolCallId: string }[]).map((part) => part.toolCallId), ['n', 'a']);
});

test('a call whose handler throws keeps no other from its result', async () => {
  await using broker = await Broker.start();
  const other = 'agent://widgets.co/other';
  await using buyer = agent({ url: broker.url, token: BUYER }).onTurn((deal) => {
    if (deal.counterparty === other) throw new Error('no database');
    return deal.agreed ? complete() : deal.theirOffer && accept(deal.theirOffer);
  });
  await using both = new Counterparty(broker, SELLER).offers(cups(80));
  await using fails = new Counterparty(broker, other).offers(cups(80));
  const { resume } = negotiate(buyer, (seller: string, key) => buyer.open(seller, 'cups', cups(60), { key }), { inputSchema: z.string() });
  const call = (toolCallId: string, input: string) => ({ type: 'tool-call', toolCallId, toolName: 'negotiate', input }) as const;
  const asked: ModelMessage[] = [{ role: 'assistant', content: [call('a', other), call('b', SELLER)] }];
  let next = await resume(asked);
  while (next.parked.length > 1 || next.parked[0]?.error === undefined) {
    await buyer.call('turn.wait', { seconds: 0.2 });
    next = await resume(asked);
  }
  assert.deepEqual(next.parked.map((p) => [p.toolCallId, p.state, String(p.error)]), [['a', '', 'Error: no database']]);
  assert.deepEqual((next.messages[1]!.content as { toolCallId: string }[]).map((part) => part.toolCallId), ['b']);
  assert.ok(both && fails);
});

test('two chats that call alike', async () => {
  await using broker = await Broker.start();
  await using buyer = agent({ url: broker.url, token: BUYER }).onTurn(() => undefined);
  const { resume } = negotiate(buyer, (price: number, key) => buyer.open(SELLER, 'cups', cups(price), { key }), { inputSchema: z.number() });
  const chat = async (input: number): Promise<string> => {
    const asked: ModelMessage[] = [{ role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'negotiate:0', toolName: 'negotiate', input }] }];
    return (await resume(asked)).parked[0]!.sessionId;
  };
  const one = await chat(60);
  assert.notEqual(await chat(70), one);
  assert.equal(await chat(60), one);
});

test('the tools of the broker are tools of the SDK', async () => {
  await using broker = await Broker.start();
  const five = await negotiationTools({ url: broker.url, token: BUYER });
  const args = { with: [SELLER], purpose: 'cups', terms: { price: 60 }, seconds: 0 };
  const model = new MockLanguageModelV4({
    doGenerate: {
      content: [{ type: 'tool-call', toolCallId: '1', toolName: 'open_negotiation', input: JSON.stringify(args) }],
      finishReason: { unified: 'tool-calls', raw: undefined },
      usage: { inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 0, text: 0, reasoning: 0 } },
      warnings: [],
    },
  });
  const { toolResults } = await generateText({ model, prompt: 'buy', tools: tools(five), instructions: five.instructions });
  const { negotiationId } = JSON.parse(String(toolResults[0]?.output)) as { negotiationId: string };
  await using buyer = agent({ url: broker.url, token: BUYER });
  assert.equal((await buyer.deal(negotiationId)).purpose, 'cups');
  assert.deepEqual(model.doGenerateCalls[0]?.tools?.map((t) => t.name), five.tools.map((t) => t.name));
});
