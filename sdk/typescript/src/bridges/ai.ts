/**
 * The Vercel AI SDK: tools for a model, and a negotiation that a model starts and that outlives the process.
 *
 *     const cups = negotiate(buyer, ({ seller }, key) => buyer.open(seller, 'cups', { price: 60 }, { key }), { inputSchema });
 *     const { responseMessages } = await generateText({ model, messages, tools: cups.tools });
 *     await store([...messages, ...responseMessages]);
 *     const { messages: next, parked } = await cups.resume(await stored()); // now, and whenever something happened
 *
 * The tool has no `execute`: its result is added once the deal is over, and until then the messages are all there is
 * to keep. The agent's handlers decide what is said, and a human in parley's inbox decides an ESCALATE; the model
 * reads what came of it.
 * @packageDocumentation
 */

import { jsonSchema, tool, type FlexibleSchema, type JSONSchema7, type ModelMessage, type ToolCallPart, type ToolResultPart, type ToolSet } from 'ai';

import type { Agent } from '../agent.js';
import { fenced, type Deal } from '../deal.js';
import { ofProgram, passes, Refusal, TermsError, type ParleyError } from '../errors.js';
import { canonical } from '../json.js';
import type { NegotiationTools } from '../tools.js';
import { keyOf } from './key.js';

/** The tools of `negotiationTools`, with which a model negotiates itself; give it their `instructions`, too. */
export function tools(from: NegotiationTools): ToolSet {
  return Object.fromEntries(from.tools.map(({ name, description, parameters }) => {
    const inputSchema = jsonSchema<Record<string, unknown>>(parameters as JSONSchema7);
    return [name, tool({ description, inputSchema, execute: (args, { abortSignal: signal }) => from.call(name, args, { signal }) })];
  }));
}

/** The tool as the model sees it. */
export interface NegotiateToolOptions<I> {
  /** What the model says to start a negotiation. */
  inputSchema: FlexibleSchema<I>;
  /** Of the tool; by default `negotiate`. */
  name?: string;
  description?: string;
}

/** A negotiation that is not over. */
export interface Parked {
  readonly toolCallId: string;
  readonly sessionId: string;
  readonly state: string;
  /** The agents that it waits for. */
  readonly waiting: readonly string[];
  /** What a handler threw, or what is refused; then `state` is empty, and the next `resume` tries again. */
  readonly error?: unknown;
}

/** The tool, and what goes on with its calls. */
export interface Negotiation {
  /** For `generateText` and `streamText`. */
  readonly tools: ToolSet;
  /**
   * Go on with each call of the tool that has no result: open its session, decide until there is nothing to do, and
   * add the result of those that are over, or whose invitation is refused. Call the model again when none is parked.
   */
  resume(messages: readonly ModelMessage[]): Promise<{ messages: ModelMessage[]; parked: Parked[] }>;
}

/**
 * A tool with which a model starts negotiations. `opens` makes the session of a call, as `agent.open` does, by a key
 * of the call's id and input; again it must be the same. Nothing is said before `resume`, so store the messages first.
 */
export function negotiate<T, I>(agent: Agent<T>, opens: (input: I, key: string) => Promise<string>, o: NegotiateToolOptions<I>): Negotiation {
  const name = o.name ?? 'negotiate';
  const description = o.description ?? 'Start a negotiation. The result, which may take days, says what came of it.';
  return {
    tools: { [name]: tool({ description, inputSchema: o.inputSchema }) },
    async resume(messages) {
      const answered = new Set(messages.flatMap((m) => (m.role === 'tool' ? m.content.map((p) => ('toolCallId' in p ? p.toolCallId : '')) : [])));
      const parked: Parked[] = [];
      const next: ModelMessage[] = [];
      for (const message of messages) {
        next.push(message);
        const content: ToolResultPart[] = [];
        for (const { toolCallId, input } of callsOf(message, name)) {
          if (answered.has(toolCallId)) continue;
          const result = (output: ToolResultPart['output']): void => void content.push({ type: 'tool-result', toolCallId, toolName: name, output });
          let session: string;
          try {
            session = await opens(input as I, await keyOf(toolCallId, input)); // as generateText has validated it
          } catch (error) {
            if (!ofTheCall(error)) throw error;
            result({ type: 'error-text', value: error.message });
            continue;
          }
          try {
            const deal = await agent.reduce(session);
            if (deal.over) result({ type: 'json', value: resultOf(deal) });
            else parked.push({ toolCallId, sessionId: session, state: deal.state, waiting: deal.view.waiting?.for ?? [] });
          } catch (error) { // the others' results are kept
            parked.push({ toolCallId, sessionId: session, state: '', waiting: [], error });
          }
        }
        if (content.length > 0) next.push({ role: 'tool', content });
      }
      return { messages: next, parked };
    },
  };
}

function callsOf(message: ModelMessage, name: string): ToolCallPart[] {
  if (message.role !== 'assistant' || typeof message.content === 'string') return [];
  return message.content.filter((part) => part.type === 'tool-call').filter((call) => call.toolName === name);
}

/** Whether a negotiation does not begin because of what the model asked for, and not because of the program or the broker. */
function ofTheCall(error: unknown): error is ParleyError {
  if (error instanceof TermsError) return true;
  return error instanceof Refusal && !passes(error) && !ofProgram(error);
}

/** What the model reads. The terms are the other side's words, too, and fenced. */
function resultOf<T>({ id, outcome, agreed }: Deal<T>): { sessionId: string; outcome: string | null; agreed: string | null } {
  return { sessionId: id, outcome: outcome ?? null, agreed: agreed ? fenced(canonical(agreed.raw), agreed.by) : null };
}
