/** The agents of these tests. */

import { z } from 'zod';

import { accept, agent, complete, counter, type Agent, type AgentOptions, type Entry } from '../src/index.js';

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
export function buyer(options: AgentOptions<Cups>): Agent<Cups> {
  return agent({ token: BUYER, terms: Cups, ...options }).onTurn((deal) => {
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
