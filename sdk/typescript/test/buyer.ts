/** A buyer that dies at step DIES. */

import { accept, agent, complete, counter } from '../src/index.js';
import { HTTP } from '../src/http.js';
import type { Draft, Head } from '../src/index.js';
import { Cups, cups, SELLER } from './agents.js';

const dies = Number(process.env['DIES']);
let steps = 0;
const step = (): void => {
  if (++steps === dies) process.kill(process.pid, 'SIGKILL');
};

class Dying extends HTTP {
  override async say(session: string, draft: Draft, head: Head | undefined, messageId: string): Promise<unknown> {
    step();
    const answer = await super.say(session, draft, head, messageId);
    step(); // the answer is lost with the process
    return answer;
  }
}

await using buyer = agent({ transport: new Dying(process.env['PARLEY_URL']!, process.env['PARLEY_TOKEN']!), terms: Cups }).onTurn(async (deal) => {
  step();
  await Promise.resolve();
  if (deal.agreed) {
    step();
    return complete();
  }
  step();
  return deal.theirOffer!.terms.price > 85 ? counter(deal.theirOffer!, cups(deal.step(60, 100))) : accept(deal.theirOffer!);
});
const deal = await buyer.negotiate(SELLER, 'cups', cups(60));
console.log(deal.id, deal.agreed?.terms.price);
