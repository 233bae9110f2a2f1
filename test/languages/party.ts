/** One side of a negotiation in TypeScript, over the SDK: ROLE is buyer, seller or colleague. A buyer prints its session and the price. */

import { accept, agent, answer, commit, complete, counter, delegate, escalate, propose, wait } from '../../sdk/typescript/src/index.js';

declare const process: { env: Record<'ROLE' | 'MODE' | 'BEST' | 'PEER' | 'COLLEAGUE' | 'PARLEY_URL' | 'PARLEY_TOKEN', string> };
const { ROLE, MODE, BEST, PEER, COLLEAGUE, PARLEY_URL, PARLEY_TOKEN } = process.env;

interface Cups {
  price: number;
  currency: string;
}
const cups = (price: number): Cups => ({ price, currency: 'EUR' });
const best = Number(BEST);
const sells = ROLE === 'seller';
const assessment = { reasoning: 'it fits', suggestedRoles: { ownUser: 'patient', otherUser: 'agent' } };
const also = MODE === 'bilateral/1' ? { also: { assessment } } : {};

const party = agent<Cups>({ url: PARLEY_URL, token: PARLEY_TOKEN })
  .onInvitation((deal) => accept(deal.invitation!))
  .onCheck((deal) => (deal.check!.status === 'offered' ? accept(deal.check!) : answer(deal.check!, { assessment: 'fine' })))
  .onTurn((deal) => {
    const [offer, mine] = [deal.theirOffer, deal.myOffer];
    if (deal.agreed) return !sells && deal.allows('CLOSE') ? complete() : undefined;
    if (MODE === 'convergent/1' && deal.allows('COMMIT')) return commit((mine ?? offer)!);
    if (mine) { // of convergent/1, whose authors accept their own offers, too
      const accepted = deal.news.some((e) => e.performative === 'ACCEPT' && e.content.body['referenceId'] === mine.id);
      return accepted && deal.allows('ACCEPT', mine) ? accept(mine) : undefined;
    }
    if (!offer) return undefined;
    const price = Number(offer.raw['price']);
    if (sells ? price < best : price > best) {
      return counter(offer, cups(sells ? Math.max(best, 120 - 20 * deal.round) : Math.min(75, 60 + 5 * deal.round)), also);
    }
    if (!sells && MODE === 'asp/1') {
      const asks = deal.delegation(COLLEAGUE);
      if (!asks) return delegate(COLLEAGUE, { about: offer });
      if (!asks.result) return wait(asks);
      if (!deal.approval(offer)?.granted) return escalate(offer, { why: 'everything is above my limit' });
    }
    return accept(offer, also);
  });

if (ROLE !== 'buyer') await party.run();
const deal = await party.negotiate(PEER, 'cups', propose(cups(60), { subject: 'cups', ...also }), { mode: MODE });
console.log(deal.id, deal.agreed ? deal.agreed.raw['price'] : deal.outcome);
await party.close();
