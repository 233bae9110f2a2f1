/** A model that follows rules negotiates with the five tools. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Broker } from '../src/testing.js';
import { negotiationTools } from '../src/tools.js';
import { BUYER, SELLER, seller } from './agents.js';

interface View {
  negotiationId: string;
  head: string;
  agreed?: string;
  offers: { id: string; mine: boolean; status: string; terms: { price: number } }[];
}

test('a model buys in at most six calls', async () => {
  await using broker = await Broker.start();
  await using sells = seller({ url: broker.url }, 70).start();
  const tools = await negotiationTools({ url: broker.url, token: BUYER });
  assert.equal(tools.openai().length, 5);
  assert.ok(tools.anthropic().every((t) => t.input_schema['type'] === 'object'));
  let calls = 0;
  const call = async <T>(name: string, args: Record<string, unknown>): Promise<T> => {
    calls++;
    return JSON.parse(await tools.call(name, args)) as T;
  };
  const opened = await call<View>('open_negotiation', { with: [SELLER], purpose: 'cups', terms: { price: 60, currency: 'EUR' }, seconds: 20 });
  const { negotiationId } = opened;
  let view = await call<View>('wait_for_turn', { negotiationId, seconds: 20 });
  while (!view.agreed) {
    const offer = view.offers.find((o) => o.status === 'open' && !o.mine)!;
    const answer = offer.terms.price > 110 ? { action: 'counter', terms: { price: 65 }, seconds: 20 } : { action: 'accept' };
    const said = await call<{ success: boolean; view?: View }>('respond_to_negotiation', { negotiationId, ...answer, referenceId: offer.id, ifHead: view.head });
    assert.ok(said.success, JSON.stringify(said));
    view = said.view ?? (await call<View>('get_negotiation', { negotiationId }));
  }
  assert.ok(view.offers.find((o) => o.id === view.agreed)!.terms.price <= 110 && calls <= 6, `${calls}`);
  const refused = await call<{ success: boolean; code: string }>('respond_to_negotiation', { negotiationId, action: 'withdraw', referenceId: 'p9' });
  assert.ok(!refused.success && refused.code);
  assert.ok((await sells.deal(negotiationId)).agreed);
});
