/** Handlers that take long, and a clock that moves meanwhile. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { accept, agent, close, complete, counter, type Agent } from '../src/index.js';
import { Broker } from '../src/testing.js';
import { BUYER, Cups, cups, SELLER, seller } from './agents.js';

/** Something that happens once. */
function event(): { happens: () => void; happened: Promise<void> } {
  let happens = (): void => undefined;
  const happened = new Promise<void>((resolve) => (happens = resolve));
  return { happens, happened };
}

test('of two workers that decide for 90 seconds, what the second decides too late is not said: it decides again', async () => {
  await using broker = await Broker.start();
  const agreed = event();
  const seen = { one: [] as boolean[], two: [] as boolean[] }; // whether it was agreed, for each call
  const works = { one: event(), two: event() };
  const decided = { one: event(), two: event() };
  const worker = (name: 'one' | 'two'): Agent<Cups> => agent({ url: broker.url, token: BUYER, terms: Cups }).onTurn(async (deal) => {
    if (deal.purpose === 'quick') return deal.agreed ? complete() : accept(deal.theirOffer!);
    seen[name].push(deal.agreed !== undefined);
    if (deal.agreed) {
      agreed.happens();
      return name === 'two' ? complete() : undefined;
    }
    works[name].happens();
    await decided[name].happened;
    return name === 'one' ? accept(deal.theirOffer!) : counter(deal.theirOffer!, cups(61));
  }).start();
  await using sells = seller({ url: broker.url }, 95).start();
  await using one = worker('one');
  await using two = worker('two');
  const slow = two.negotiate(SELLER, 'slow', cups(60));
  await Promise.all([works.one.happened, works.two.happened]);
  await broker.advance('90s');
  assert.ok((await two.negotiate(SELLER, 'quick', cups(60))).agreed); // other sessions do not wait
  decided.one.happens();
  await agreed.happened;
  decided.two.happens();
  const deal = await slow;
  assert.deepEqual(deal.entries.filter((e) => e.sender.agentId === BUYER).map((e) => e.performative), ['PROPOSE', 'PROPOSE', 'ACCEPT', 'CLOSE']);
  assert.deepEqual([seen.one[0], seen.two], [false, [false, true]]);
  assert.ok(sells && one);
});

test('an offer that expires because the clock is moved is seen at once', async () => {
  await using broker = await Broker.start();
  const [offered, lapsed] = [event(), event()];
  const validUntil = new Date(Date.parse(await broker.advance('1s')) + 3_600_000).toISOString();
  await using sells = agent({ url: broker.url, token: SELLER, terms: Cups }).onInvitation((deal) => accept(deal.invitation!)).onTurn((deal) => {
    if (!deal.lapsed) return deal.theirOffer && counter(deal.theirOffer, cups(90), { also: { validUntil } });
    lapsed.happens();
    return close();
  }).start();
  await using buys = agent({ url: broker.url, token: BUYER, terms: Cups }).onTurn(() => offered.happens());
  const asked = buys.negotiate(SELLER, 'cups', cups(60));
  await offered.happened;
  await broker.advance('2h');
  await lapsed.happened;
  assert.ok((await asked).over);
  assert.ok(sells);
});
