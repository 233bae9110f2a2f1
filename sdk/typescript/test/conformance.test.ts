/** The conversations of test/conformance, said by this SDK: what they say is accepted is, and the rest is refused with their codes. */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { agent, isRefused, NotAllowed, Refusal, type Act, type Agent, type Deal, type Draft } from '../src/index.js';
import { HTTP } from '../src/http.js';
import { canonical, uuid7Of } from '../src/json.js';
import { draftOf } from '../src/moves.js';
import { Broker } from '../src/testing.js';

const conversations = fileURLToPath(new URL('../../../../test/conformance/testdata/', import.meta.url));
const principals: Record<string, string> = {
  alpha: 'agent://acme.com/alpha', beta: 'agent://widgets.co/beta', gamma: 'agent://gizmo.io/gamma',
  delta: 'agent://acme.com/legal/delta', epsilon: 'agent://acme.com/epsilon', outsider: 'agent://nowhere.net/x',
  alice: 'human://acme.com/alice', bob: 'human://widgets.co/bob', carol: 'human://acme.com/carol',
};
const reads = /^(session|check|escalation|schema|agent|broker)\.(get|list|messages|snapshot|history|info|nonsense)$/;

type Body = Record<string, unknown>;
type Said = { who: string; how: string; act: () => Promise<unknown> };

/** What this SDK cannot say, or what a broker of developers does not know. */
class LeftOut extends Error {}

class Counts extends Map<string, number> {
  add(name: string): void {
    this.set(name, (this.get(name) ?? 0) + 1);
  }

  get total(): number {
    return [...this.values()].reduce((sum, n) => sum + n, 0);
  }
}

/** Plays the conversations of a file, one after the other. */
class Stage {
  readonly agents = new Map<string, Agent<object>>();
  readonly raw = new Map<string, HTTP>();
  readonly played = new Counts();
  readonly left = new Counts();
  readonly wrong: string[] = [];
  barred = ''; // why the rest of the file cannot be played
  #lost = ''; // … of the conversation
  #names = new Map<string, string>();
  #acts = 0;
  #said = new Map<string, Said>();

  constructor(readonly broker: Broker) {
    for (const [name, uri] of Object.entries(principals)) {
      this.agents.set(name, agent<object>({ url: broker.url, token: uri }));
      this.raw.set(name, new HTTP(broker.url, uri));
    }
  }

  async scene(): Promise<void> {
    this.#names = new Map([['session', await uuid7Of(crypto.randomUUID())]]);
    this.#acts = 0;
    this.#said = new Map();
    this.#lost = this.barred;
  }

  /** Plays a file. Calls that read are left to the tests in Go; people need not register. */
  async play(text: string): Promise<void> {
    await this.scene();
    const lines = text.split('\n');
    for (const [n, line] of lines.entries()) {
      const [word, who = '', what = ''] = line.split(' ');
      const answer = lines[n + 1] ?? '';
      if (word === '==') await this.scene();
      else if (word === 'restart') await this.broker.restart();
      else if (word === 'event') this.#lost ||= 'waits for a time to pass';
      else if (word === '?' && !reads.test(what) && !principals[who]!.startsWith('human://')) {
        this.#lost ||= `follows ${what}, which this SDK has no name for`;
        this.barred = this.#lost;
      } else if (word === '>') {
        this.#acts++;
        try {
          if (this.#lost) throw new LeftOut(this.#lost);
          await this.#say(line, answer);
        } catch (error) {
          if (!(error instanceof LeftOut)) throw error;
          this.left.add(error.message);
          if (answer.startsWith('< {') && !answer.includes('"duplicate":true')) this.#lost ||= 'follows an act that is left out';
        }
      }
    }
  }

  async #read(text: string): Promise<Body> {
    const fresh = await uuid7Of(crypto.randomUUID());
    return JSON.parse(text.replace(/\$\{([a-z0-9:]+)\}/g, (_, name: string) => {
      if (name === 'new') return fresh;
      if (name.startsWith('soon:')) return new Date(Date.now() + Number(name.slice(5))).toISOString();
      const value = this.#names.get(name);
      if (value === undefined) throw new LeftOut(`names \${${name.replace(/\d+/, 'N')}}, which this SDK does not choose`);
      return value;
    })) as Body;
  }

  async #say(line: string, answer: string): Promise<void> {
    const [, who, performative, rest] = /^> (\S+) (\S+) (.*)$/.exec(line) as unknown as [string, string, string, string];
    const label = `m${this.#acts}`;
    let said = this.#said.get(rest);
    if (performative === 'again') {
      this.#acts--;
      if (said?.who !== who) throw new LeftOut('says again what it did not say');
      said = { ...said, how: 'said again' };
    } else {
      said = await this.#prepared(who, performative, rest);
      this.#said.set(label, said);
    }
    const expected = answer.startsWith('< {') ? '' : (JSON.parse(answer.slice(6)) as { error: { code: string } }).error.code;
    let got = '';
    try {
      await said.act();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      got = error.code;
    }
    if (got !== expected) this.wrong.push(`${line}\n  ${answer}\n  here: ${got || 'accepted'}`);
    this.played.add(`${said.how}, ${expected ? 'refused' : 'accepted'}`);
    if (!got) await this.#learn(who, label);
  }

  /** How an act is said: by its value, and as it is if that is none of the moves, or has more than the act. */
  async #prepared(who: string, performative: string, rest: string): Promise<Said> {
    if (rest.includes(' & ')) throw new LeftOut('has sealed parts');
    const [body = '', over] = rest.split(' + ');
    const members = over === undefined ? {} : await this.#read(over);
    if (Object.keys(members).some((name) => name !== 'recipient')) throw new LeftOut('sets members of the envelope that this SDK sets itself');
    const session = this.#names.get('session')!;
    const said = await this.#read(body);
    const draft: Draft = { performative, body: said, ...members };
    const id = await uuid7Of(session, this.#acts);
    const asItIs = (how: string): Said => ({ who, how, act: () => this.raw.get(who)!.say(session, draft, undefined, id) });
    const deal = await this.#deal(who);
    if (!deal) return asItIs('said as it is');
    const answers = typeof said['referenceId'] === 'string' && !['DELEGATE', 'ESCALATE'].includes(performative); // which ask about it
    const about = answers ? { reference: String(said['referenceId']) } : {};
    const value: Act = { performative, fills: said, ...about, ...members };
    try {
      const same = canonical({ ...draftOf(value, deal), ...members }) === canonical(draft);
      return same ? { who, how: 'said by its value', act: () => this.agents.get(who)!.say(deal, value) } : asItIs('said as it is');
    } catch (error) {
      if (!(error instanceof NotAllowed)) throw error;
      return asItIs('none of the moves');
    }
  }

  async #deal(who: string): Promise<Deal<object> | undefined> {
    try {
      return await this.agents.get(who)!.deal(this.#names.get('session')!);
    } catch (error) {
      if (isRefused(error)) return undefined;
      throw error;
    }
  }

  async #learn(who: string, label: string): Promise<void> {
    const entries = (await this.#deal(who))?.entries ?? [];
    for (const e of entries) this.#names.set(`hash${e.sequenceNumber}`, String(e.integrity['hash']));
    const last = entries.at(-1);
    if (last && !this.#names.has(label)) this.#names.set(label, last.messageId);
  }

  async close(): Promise<void> {
    for (const one of [...this.agents.values(), ...this.raw.values()]) await one.close();
  }
}

test('the conversations of the conformance suite', async (t) => {
  await using broker = await Broker.start();
  const stage = new Stage(broker);
  const files = (await readdir(conversations)).filter((name) => name.endsWith('.txt'));
  for (const name of files) {
    stage.barred = existsSync(conversations + name.replace('.txt', '.yaml')) ? 'has rules for who decides, which a broker of developers has not' : '';
    await stage.play(await readFile(conversations + name, 'utf8'));
  }
  await stage.close();
  t.diagnostic(`${stage.played.total} acts of ${files.length} conversations were played, ${stage.left.total} left out`);
  for (const [what, n] of [...stage.played, ...stage.left]) t.diagnostic(`${n} ${what}`);
  assert.equal(stage.wrong.join('\n'), '');
});
