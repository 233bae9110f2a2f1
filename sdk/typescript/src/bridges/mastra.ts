/**
 * Mastra: a workflow step that negotiates, suspended while the session waits for others.
 *
 *     const step = negotiation(buyer, ({ seller }, key) => buyer.open(seller, 'cups', { price: 60 }, { key }), { inputSchema });
 *     const workflow = createWorkflow({ id: 'buying', inputSchema, outputSchema: Result }).then(step).commit();
 *     await run.start({ inputData });  // runs until the other side, or a human, has to act
 *     await run.resume({ step });      // when something happened: a wake-up call, or a poll
 *
 * The agent's handlers decide, with a model if they like. Mastra runs a step again from its start when it is resumed:
 * that is safe, since handlers are reducers, and what was said on one head is said once. An ESCALATE is decided by a
 * human in parley's inbox; the workflow only waits.
 * @packageDocumentation
 */

import { createStep, type DefaultEngineType, type Step } from '@mastra/core/workflows';
import { z } from 'zod';

import type { Agent } from '../agent.js';
import { keyOf } from './key.js';

/** What came of a negotiation. `agreed` are the terms, which the other side wrote, too: data. */
export const Result = z.object({
  sessionId: z.string(),
  outcome: z.string().nullable(),
  agreed: z.record(z.string(), z.unknown()).nullable(),
});
export type Result = z.infer<typeof Result>;

/** What a step is suspended on: its session, and the agents that this waits for. */
export const Parked = z.object({ sessionId: z.string(), state: z.string(), waiting: z.array(z.string()) });
export type Parked = z.infer<typeof Parked>;

/** The step as the workflow sees it. */
export interface StepOptions<I> {
  inputSchema: z.ZodType<I>;
  /** Of the step; by default `negotiate`. */
  id?: string;
}

/**
 * A step that negotiates until the session is over. `opens` makes the session of an input, as `agent.open` does, by a
 * key of the run's id, the step's and the input; again it must be the same. So two steps, or two items of a `foreach`,
 * are two sessions unless their inputs are the same.
 */
export function negotiation<T, I>(
  agent: Agent<T>,
  opens: (input: I, key: string) => Promise<string>,
  o: StepOptions<I>,
): Step<string, unknown, I, Result, unknown, Parked, DefaultEngineType> {
  const id = o.id ?? 'negotiate';
  return createStep({
    id,
    inputSchema: o.inputSchema,
    outputSchema: Result,
    suspendSchema: Parked,
    execute: async ({ inputData, runId, suspend }) => {
      const deal = await agent.reduce(await opens(inputData, await keyOf(`${runId} ${id}`, inputData)));
      if (!deal.over) return suspend({ sessionId: deal.id, state: deal.state, waiting: deal.view.waiting?.for ?? [] });
      return { sessionId: deal.id, outcome: deal.outcome ?? null, agreed: deal.agreed ? { ...deal.agreed.raw } : null };
    },
  });
}
