/**
 * A chat whose model has cups bought. Run it again whenever something happened: it goes on where it was parked.
 *
 * PARLEY_URL, PARLEY_TOKEN and KEPT (a file) come from the environment.
 */

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

import { accept, agent, complete, counter, escalate, reject, wait } from '@parley-asp/sdk';
import { negotiate } from '@parley-asp/sdk/ai';
import { generateText, type ModelMessage } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { z } from 'zod';

const Cups = z.object({ price: z.number(), currency: z.string().default('EUR') });

await using buyer = agent({ url: process.env['PARLEY_URL'], token: process.env['PARLEY_TOKEN'], terms: Cups }).onTurn((deal) => {
  if (deal.agreed) return complete();
  const offer = deal.theirOffer;
  if (!offer) return wait();
  if (offer.terms.price > 100) return counter(offer, { price: deal.step(60, 100), currency: 'EUR' });
  const approval = deal.approval(offer);
  if (offer.terms.price > 90 && !approval?.granted) return approval?.decision ? reject(offer, 'above 90') : escalate(offer, { why: 'above 90' });
  return accept(offer);
});
const cups = negotiate(buyer, ({ seller }, key) => buyer.open(seller, 'cups', { price: 60, currency: 'EUR' }, { key }), {
  description: 'Have cups bought. The result, which may take days, says what came of it.',
  inputSchema: z.object({ seller: z.string().startsWith('agent://') }),
});

/** Follows rules; put a real model in its place. */
const model = new MockLanguageModelV4({
  doGenerate: ({ prompt }) => {
    const result = prompt.flatMap((m) => (m.role === 'tool' ? m.content : [])).find((part) => part.type === 'tool-result');
    const call = { type: 'tool-call', toolCallId: crypto.randomUUID(), toolName: 'negotiate', input: '{"seller": "agent://widgets.co/seller"}' } as const;
    return Promise.resolve({
      content: [result ? { type: 'text', text: JSON.stringify(result.output) } : call],
      finishReason: { unified: result ? 'stop' : 'tool-calls', raw: undefined },
      usage: {
        inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 0, text: 0, reasoning: 0 },
      },
      warnings: [],
    });
  },
});

const file = process.env['KEPT']!;
const store = (messages: ModelMessage[]): void => {
  writeFileSync(`${file}.new`, JSON.stringify(messages));
  renameSync(`${file}.new`, file);
};

for (let asked: ModelMessage[] = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : [{ role: 'user', content: 'Buy cups.' }]; ; ) {
  const { messages, parked } = await cups.resume(asked);
  store(messages);
  if (parked[0]) {
    console.log('parked', parked[0].state);
    if (process.env['STAYS']) await new Promise((resolve) => setTimeout(resolve, 600_000)); // until it is killed
    break;
  }
  const last = messages.at(-1)!;
  if (last.role === 'assistant') {
    console.log('over', JSON.stringify(last.content));
    break;
  }
  const { responseMessages } = await generateText({ model, messages, tools: cups.tools });
  store((asked = [...messages, ...responseMessages]));
}
