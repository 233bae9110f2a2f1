/** The author's schema as a terms schema that the broker checks. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { z } from 'zod';

import { accept, agent, complete, counter, isRefused, propose, type Entry } from '../src/index.js';
import { Broker } from '../src/testing.js';
import { BUYER, Cups, cups, SELLER, seller } from './agents.js';

test('the broker checks offers by the schema', async () => {
  await using broker = await Broker.start();
  await using sells = seller({ url: broker.url }).start();
  await using buys = agent({ url: broker.url, token: BUYER, terms: Cups, schema: 'acme-cups-v1' }).onTurn((deal) => {
    if (deal.agreed) return complete();
    return deal.theirOffer!.terms.price > 85 ? counter(deal.theirOffer!, cups(deal.step(60, 100.5))) : accept(deal.theirOffer!);
  });
  const deals = await Promise.all(['1', '2'].map((key) => buys.negotiate(SELLER, 'cups', cups(60.5), { key })));
  const published = (await sells.call('schema.get', { name: 'acme-cups-v1' })) as { by: string; schema: { properties: { price: unknown } } };
  assert.deepEqual([published.by, published.schema.properties.price], [BUYER, { type: 'number' }]);
  for (const deal of deals) {
    assert.deepEqual([deal.schemas, deal.agreed?.terms.price], [['acme-cups-v1'], 80.25]);
    const mine = deal.entries.filter((e: Entry) => e.performative === 'COUNTER' && e.sender.agentId === BUYER);
    assert.deepEqual(new Set(mine.map((e) => e.content.body['schema'])), new Set(['acme-cups-v1']));
  }
});

test('terms that do not fit are refused', async () => {
  await using broker = await Broker.start();
  await using buys = agent({ url: broker.url, token: BUYER, terms: Cups, schema: 'acme-cups-v1' });
  await using other = agent({ url: broker.url, token: SELLER, terms: z.object({ price: z.unknown() }), schema: 'acme-cups-v1' });
  const session = await buys.open(SELLER, 'cups');
  const deal = await other.say(await other.deal(session), accept('invitation'));
  await assert.rejects(other.say(deal, propose({ price: '5' })), (error) => isRefused(error, 'schema_invalid'));
  await other.say(deal, propose({ price: 5 }));
  assert.equal((await buys.deal(session)).theirOffer?.terms.price, 5);
});

test('a name is of one schema', async () => {
  await using broker = await Broker.start();
  await using first = agent({ url: broker.url, token: BUYER, terms: Cups, schema: 'cups' });
  await using same = agent({ url: broker.url, token: SELLER, terms: Cups, schema: 'cups' });
  await using other = agent({ url: broker.url, token: BUYER, terms: z.object({ price: z.string() }), schema: 'cups' });
  await first.open(SELLER, 'cups');
  await same.open(BUYER, 'cups');
  await assert.rejects(other.open(SELLER, 'cups', undefined, { key: '2' }), (error) => isRefused(error, 'duplicate') && /cups.*is registered already/.test(String(error)));
  assert.throws(() => agent({ token: BUYER, schema: 'cups' }), TypeError);
  assert.throws(() => agent({ token: BUYER, schema: 'cups', terms: { '~standard': { validate: () => ({ value: {} }) } } }), TypeError);
});
