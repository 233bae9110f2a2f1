/** A negotiation over HTTP between two agents with keys of their own, with nothing but what every runtime has. */

import { agent } from '../../src/index.js';
import { accept, complete, counter } from '../../src/acts.js';
import { Cups, cups } from './terms.js';

interface Keys { agent: string; seed: string; token: string }
export interface Told { url: string; buyer: Keys; seller: Keys; key: string }

export async function negotiated({ url, buyer, seller, key }: Told): Promise<string> {
  const sells = agent({ url, ...seller, terms: Cups }).onInvitation((deal) => accept(deal.invitation!)).onTurn((deal) => {
    if (deal.agreed || !deal.theirOffer) return undefined;
    return deal.theirOffer.terms.price >= 80 ? accept(deal.theirOffer) : counter(deal.theirOffer, cups(Math.max(80, 120 - 15 * deal.round)));
  }).start();
  const buys = agent({ url, ...buyer, terms: Cups }).onTurn((deal) => {
    if (deal.agreed) return complete();
    return deal.theirOffer!.terms.price > 85 ? counter(deal.theirOffer!, cups(deal.step(60, 100))) : accept(deal.theirOffer!);
  });
  const deal = await buys.negotiate(seller.agent, 'cups', cups(60), { key });
  await Promise.all([buys.close(), sells.close()]);
  return `${deal.outcome} ${deal.agreed?.terms.price}`;
}
