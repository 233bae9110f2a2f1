/** The agents of these tests. */

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { z } from 'zod';

import { accept, agent, complete, counter, type Agent, type AgentOptions, type Deal, type Entry } from '../src/index.js';
import { Broker } from '../src/testing.js';

export const BUYER = 'agent://acme.com/buyer';
export const SELLER = 'agent://widgets.co/seller';
export const COMPLIANCE = 'agent://acme.com/compliance';

export const Cups = z.object({ price: z.number(), currency: z.string().default('EUR') });
export type Cups = z.infer<typeof Cups>;

export const cups = (price: number): Cups => ({ price, currency: 'EUR' });

/** Sells for at least so much: asks for 120 first, and comes down by 15. */
export function seller(options: AgentOptions<Cups>, least = 80): Agent<Cups> {
  return agent({ token: SELLER, terms: Cups, ...options })
    .onInvitation((deal) => accept(deal.invitation!))
    .onTurn((deal) => {
      if (deal.agreed || !deal.theirOffer) return undefined;
      return deal.theirOffer.terms.price >= least ? accept(deal.theirOffer) : counter(deal.theirOffer, cups(Math.max(least, 120 - 15 * deal.round)));
    });
}

/** Buys for at most 85, in steps from 60 to 100. */
export function buyer(options: AgentOptions<Cups>, decides: (deal: Deal<Cups>) => unknown = () => undefined): Agent<Cups> {
  return agent({ token: BUYER, terms: Cups, ...options }).onTurn((deal) => {
    decides(deal);
    if (deal.agreed) return complete();
    if (!deal.theirOffer) return undefined;
    return deal.theirOffer.terms.price > 85 ? counter(deal.theirOffer, cups(deal.step(60, 100))) : accept(deal.theirOffer);
  });
}

export const nine = ['PROPOSE', 'ACCEPT', 'PROPOSE', 'COUNTER', 'COUNTER', 'COUNTER', 'COUNTER', 'ACCEPT', 'CLOSE'];

export async function transcript<T>(a: Agent<T>, session: string): Promise<string[]> {
  const page = (await a.call('session.messages', { sessionId: session })) as { messages: Entry[] };
  return page.messages.map((e) => e.performative);
}

const run = promisify(execFile);

/** Registers an agent with a broker that has logins: its seeds, and a token. */
export async function registered(broker: Broker, uri: string): Promise<{ agent: string; seed: string; login: string; token: string }> {
  const out = join(broker.data, `${uri.split('/').at(-1)!}.nk`);
  const where = ['--data', broker.data, '--url', broker.natsUrl];
  await run(Broker.program(), ['agent', 'add', uri, '--key-out', out, ...where]);
  const { stdout } = await run(Broker.program(), ['token', 'add', uri, ...where]);
  const [seed, login] = await Promise.all([readFile(out, 'utf8'), readFile(out.replace(/nk$/, 'login.nk'), 'utf8')]);
  return { agent: uri, seed: seed.trim(), login: login.trim(), token: /parley_\S+/.exec(stdout)![0] };
}

/** Has a human decide for an organisation, so that its agents may ask one. */
export async function withHuman(broker: Broker, uri: string): Promise<void> {
  await run(Broker.program(), ['human', 'add', uri, '--may-decide', '--key-out', join(broker.data, 'human.nk'), '--data', broker.data, '--url', broker.natsUrl]);
}
