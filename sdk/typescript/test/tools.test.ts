/** A model that follows rules negotiates with the five tools. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Broker, Counterparty } from '../src/testing.js';
import { negotiationTools } from '../src/tools.js';
import { BUYER, cups, SELLER, seller } from './agents.js';

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

test('a model that reads and decides in one step decides nothing', async () => {
  await using broker = await Broker.start();
  await using sells = new Counterparty(broker, SELLER).offers(cups(80));
  const tools = await negotiationTools({ url: broker.url, token: BUYER });
  const { negotiationId } = JSON.parse(await tools.call('open_negotiation', { with: [SELLER], purpose: 'cups', terms: cups(60), seconds: 20 })) as View;
  let offers: View['offers'] = [];
  while (!offers.some((o) => !o.mine)) ({ offers } = JSON.parse(await tools.call('wait_for_turn', { negotiationId, seconds: 20 })) as View);
  const accept = { negotiationId, action: 'accept' };
  const [, said] = await Promise.all([tools.call('get_negotiation', { negotiationId }), tools.call('respond_to_negotiation', accept)]);
  assert.ok(said.includes('nothing was said'), said);
  assert.ok(!(await sells.agent.deal(negotiationId)).agreed);
  assert.ok((await tools.call('respond_to_negotiation', accept)).includes('"success":true'));
});

test('a call that is aborted says nothing more; a wrong token is said', async () => {
  await using broker = await Broker.start();
  const tools = await negotiationTools({ url: broker.url, token: BUYER });
  const asked = new AbortController();
  const waits = tools.call('wait_for_turn', { seconds: 50 }, { signal: asked.signal });
  asked.abort();
  await assert.rejects(waits, { name: 'AbortError' });
  await assert.rejects(tools.call('list_negotiations', {}, { signal: asked.signal }), { name: 'AbortError' });
  await assert.rejects(negotiationTools({ url: broker.url, token: 'nobody' }), /unauthorized: the token is missing, wrong, expired or removed/);
});
