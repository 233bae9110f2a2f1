/**
 * A real broker for node:test and vitest, and a counterparty that follows a script. The broker is the program
 * `parley` that comes with the package.
 * @packageDocumentation
 */

import { spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { accept, counter, inform, propose, reject, type Act } from './acts.js';
import { Agent, serving } from './agent.js';
import type { Deal, Offer } from './deal.js';
import { Faults } from './faults.js';
import { program } from './program.js';

export { Faults };

/** A free port below those that systems give to connections, one of which would take it before the broker or between two starts, and above the last that fetch refuses. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_081, 32_768);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

/** A broker in a process of its own. Its ports and its data outlive a kill. */
export class Broker {
  #process: ChildProcess | undefined;
  #lines: AsyncIterator<string> | undefined;
  /** Verifies receipts and transcripts. */
  key = '';

  private constructor(
    readonly data: string, readonly url: string, readonly natsUrl: string, readonly dev: boolean,
    /** What goes wrong between it and the agents that reach it by `faults.url` or `faults.natsUrl`. */
    readonly faults: Faults,
  ) {}

  /** Start one on free ports, without logins unless `dev` is false: an agent's URI is its token. */
  static async start(o: { dev?: boolean } = {}): Promise<Broker> {
    const data = await mkdtemp(join(tmpdir(), 'parley-'));
    for (let left = 3; ; left--) {
      const [url, natsUrl] = [`http://127.0.0.1:${await freePort()}`, `nats://127.0.0.1:${await freePort()}`];
      const faults = await Faults.between(url, natsUrl, () => broker.restart());
      const broker: Broker = new Broker(data, url, natsUrl, o.dev ?? true, faults);
      try {
        await broker.up();
        return broker;
      } catch (error) {
        faults.close();
        if (left === 0 || !String(error).includes('address already in use')) throw error; // else somebody was faster
      }
    }
  }

  /** The program `parley`: of `PARLEY_BINARY`, of the package for this platform, or on the PATH. */
  static program(): string {
    return program();
  }

  /** Start it again, and return once it serves. */
  async up(): Promise<void> {
    const where = ['--data', this.data, '--listen', this.natsUrl.slice(7), '--http', this.url.slice(7)];
    const flags = ['serve', '--ready-json', '--private-webhooks', ...(this.dev ? ['--dev', '--test-clock'] : []), ...where];
    const child = spawn(Broker.program(), flags, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#process = child;
    let said = '';
    child.stderr.on('data', (data) => (said += String(data)));
    this.#lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const failed = new Promise<never>((_, reject) => {
      child.on('error', reject);
      child.on('close', () => reject(new Error(`the broker does not start: ${said}`)));
    });
    failed.catch(() => undefined); // it ends later, too
    this.key = ((await Promise.race([this.#hear(), failed])) as { key?: string }).key ?? (await failed);
  }

  async #hear(): Promise<unknown> {
    const { value } = await this.#lines!.next();
    return JSON.parse(String(value ?? '{}'));
  }

  /**
   * Move the broker's clock, such as by `24h`; returns its time. Deadlines that have passed have ended what they end.
   * The agents of this process look at their sessions again, since an offer that expires is no news.
   */
  async advance(by: string): Promise<string> {
    this.#process?.stdin?.write(`advance ${by}\n`);
    const answer = (await this.#hear()) as { now?: string; error?: string };
    if (answer.now === undefined) throw new RangeError(answer.error);
    for (const agent of serving) agent.lookAgain();
    return answer.now;
  }

  /** End it without a word, as a power failure does. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }

  /** Kill it, and start it on the same data. */
  async restart(): Promise<void> {
    await this.kill();
    await this.up();
  }

  /** Ends it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.faults.close();
    await rm(this.data, { recursive: true, force: true });
  }
}

type Loose = Record<string, unknown>;

/** An agent that follows a script: it accepts the invitation, then plays one step each time it is its turn. */
export class Counterparty {
  readonly agent: Agent<Loose>;
  readonly #script: ((deal: Deal<Loose>) => Act)[] = [];
  readonly #came: Offer<Loose>[] = [];
  readonly #waits: ((offer: Offer<Loose>) => void)[] = [];
  readonly #seen = new Set<string>();

  constructor(broker: Broker, readonly uri: string) {
    this.agent = new Agent<Loose>({ url: broker.url, token: uri })
      .onInvitation((deal) => accept(deal.invitation!))
      .onTurn((deal) => this.#plays(deal))
      .start();
  }

  /** Offer these terms next, instead of what is on the table. */
  offers(terms: Loose): this {
    this.#script.push((deal) => (deal.theirOffer ? counter(deal.theirOffer, terms) : propose(terms)));
    return this;
  }

  /** Accept what is on the table. */
  accepts(): this {
    this.#script.push((deal) => accept(deal.theirOffer!));
    return this;
  }

  /** Reject what is on the table. */
  rejects(reason = 'no'): this {
    this.#script.push((deal) => reject(deal.theirOffer!, reason));
    return this;
  }

  /** The next offer of the other side; throws if it has not these terms among its own. */
  async expectsOffer(terms: Loose = {}): Promise<Offer<Loose>> {
    const offer = this.#came.shift() ?? (await new Promise<Offer<Loose>>((resolve) => this.#waits.push(resolve)));
    for (const [name, value] of Object.entries(terms)) {
      if (offer.raw[name] !== value) throw new Error(`${offer.text}: expected ${name} to be ${String(value)}`);
    }
    return offer;
  }

  #plays(deal: Deal<Loose>): Act | undefined {
    const offer = deal.theirOffer;
    if (offer && !this.#seen.has(offer.id)) {
      this.#seen.add(offer.id);
      const waits = this.#waits.shift();
      if (waits) waits(offer);
      else this.#came.push(offer);
    }
    return deal.agreed ? undefined : this.#script.shift()?.(deal);
  }

  /** Ends it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent.close();
  }
}

/** Somebody who decides escalations. */
export class Human {
  readonly agent: Agent<Loose>;

  constructor(broker: Broker, uri: string) {
    this.agent = new Agent<Loose>({ url: broker.url, token: uri });
  }

  /** Wait for an escalation, and decide it. */
  async decides(decision: 'approved' | 'denied' | 'guidance' | 'modified' = 'approved', data: Loose = {}): Promise<void> {
    for (;;) {
      const { escalations } = (await this.agent.call('escalation.list', {})) as { escalations: { sessionId: string }[] };
      const [row] = escalations;
      if (row) {
        const deal = await this.agent.deal(row.sessionId);
        const item = deal.open.find((i) => i.kind === 'escalation');
        if (item) {
          const said = { type: 'resolution', data: { escalationId: item.id, decision, ...data } };
          const move = inform({}, { also: said });
          await this.agent.say(deal, { ...move, reference: item.id, fills: said });
          return;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Ends it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent.close();
  }
}
