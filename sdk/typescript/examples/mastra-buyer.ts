/**
 * A Mastra workflow that buys cups. Run it again whenever something happened: it goes on where it was suspended.
 *
 * PARLEY_URL, PARLEY_TOKEN and KEPT (a file) come from the environment.
 */

import { Mastra } from '@mastra/core';
import { createWorkflow } from '@mastra/core/workflows';
import { LibSQLStore } from '@mastra/libsql';
import { accept, agent, complete, counter, escalate, reject, wait } from '@parley-asp/sdk';
import { negotiation, Result } from '@parley-asp/sdk/mastra';
import { z } from 'zod';

const Cups = z.object({ price: z.number(), currency: z.string().default('EUR') });

await using buyer = agent({ url: process.env['PARLEY_URL'], token: process.env['PARLEY_TOKEN'], terms: Cups }).onTurn((deal) => {
  if (deal.agreed) return complete();
  const offer = deal.theirOffer;
  if (!offer) return wait();
  if (offer.terms.price > 100) return counter(offer, { price: deal.step(60, 100), currency: 'EUR' });
  const approval = deal.approval(offer);
  if (offer.terms.price > 90 && !approval?.granted) return approval?.decision ? reject(offer, 'above 90') : escalate(offer, { why: 'above 90' });
  return accept(offer);
});
const inputSchema = z.object({ seller: z.string() });
const step = negotiation(buyer, ({ seller }, key) => buyer.open(seller, 'cups', { price: 60, currency: 'EUR' }, { key }), { inputSchema });
const buying = createWorkflow({ id: 'buying', inputSchema, outputSchema: Result }).then(step).commit();
const storage = new LibSQLStore({ id: 'runs', url: `file:${process.env['KEPT']!}` });
new Mastra({ storage, workflows: { buying }, logger: false });

const runId = 'cups';
const before = await buying.getWorkflowRunById(runId);
const run = await buying.createRun({ runId });
const goesOn = {
  suspended: () => run.resume({ step }),
  running: () => run.restart(), // it was killed within the step
  begins: () => run.start({ inputData: { seller: 'agent://widgets.co/seller' } }),
};
if (before?.status === 'success') {
  console.log('was over', JSON.stringify(before.result));
} else {
  const result = await goesOn[before?.status === 'suspended' || before?.status === 'running' ? before.status : 'begins']();
  if (result.status === 'success') console.log('over', JSON.stringify(result.result));
  else if (result.status === 'suspended') console.log('parked', result.suspendPayload[step.id].state);
  else throw new Error(result.status);
  if (result.status === 'suspended' && process.env['STAYS']) await new Promise((resolve) => setTimeout(resolve, 600_000)); // until it is killed
}
