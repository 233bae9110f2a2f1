/** Mastra: a workflow is killed while its step is suspended, and what goes on later says nothing twice. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Broker } from '../src/testing.js';
import { buys } from './parked.js';

test('a workflow that is killed while it is suspended', async () => {
  await using broker = await Broker.start();
  const { said, session, again } = await buys(broker, 'mastra-buyer', 'runs.db');
  const result = JSON.stringify({ sessionId: session, outcome: 'completed', agreed: { currency: 'EUR', price: 95 } });
  assert.equal(said.at(-1), `over ${result}`);
  assert.equal(again, `was over ${result}`);
});
