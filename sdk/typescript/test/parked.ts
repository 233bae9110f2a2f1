/** A buyer of examples/, killed while it is parked, and run again until it is over. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { Broker, Counterparty, Human } from '../src/testing.js';
import { BUYER, cups, SELLER, transcript } from './agents.js';

export interface Bought {
  /** What each run of the example said. */
  said: string[];
  session: string;
  /** What one more run says. */
  again: string;
}

/** Run an example of a broker until it speaks, and kill it if it is parked. */
async function runs(broker: Broker, example: string, kept: string): Promise<string> {
  const program = fileURLToPath(new URL(`../examples/${example}.js`, import.meta.url));
  const env = { PARLEY_URL: broker.url, PARLEY_TOKEN: BUYER, KEPT: join(broker.data, kept), STAYS: '1', MASTRA_TELEMETRY_DISABLED: '1' };
  const child = spawn(process.execPath, [program], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  const gone = new Promise((resolve) => child.on('exit', resolve));
  let said = '';
  for await (const line of createInterface(child.stdout)) {
    said = line;
    if (said.startsWith('parked')) child.kill('SIGKILL');
  }
  await gone;
  return said;
}

/** Has an example buy from a seller that comes down to 95, which a human approves; nothing is said twice. */
export async function buys(broker: Broker, example: string, kept: string): Promise<Bought> {
  const said = [await runs(broker, example, kept)];
  await using sells = new Counterparty(broker, SELLER).offers(cups(120)).offers(cups(105)).offers(cups(95));
  await using alice = new Human(broker, 'human://acme.com/alice');
  for (let escalated = 0; !said.at(-1)!.startsWith('over'); ) {
    assert.ok(said.length < 30 && said.at(-1)!.startsWith('parked'), said.join('\n'));
    said.push(await runs(broker, example, kept));
    if (said.at(-1) === 'parked ESCALATED' && ++escalated === 2) await alice.decides('approved');
  }
  assert.ok(said[0] === 'parked INVITED' && said.includes('parked ESCALATED'), said.join('\n'));
  const again = await runs(broker, example, kept);
  const { sessions } = (await sells.agent.call('session.list', {})) as { sessions: { sessionId: string }[] };
  assert.equal(sessions.length, 1);
  const session = sessions[0]!.sessionId;
  const counters = Array.from({ length: 5 }, () => 'COUNTER');
  const acts = ['PROPOSE', 'ACCEPT', 'PROPOSE', ...counters, 'ESCALATE', 'INFORM', 'ACCEPT', 'CLOSE'];
  assert.deepEqual(await transcript(sells.agent, session), acts);
  return { said, session, again };
}
