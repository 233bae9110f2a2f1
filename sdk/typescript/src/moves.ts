/** A decision becomes an act: one of the snapshot's moves, filled in. */

import type { Act } from './acts.js';
import type { Deal } from './deal.js';
import { NotAllowed } from './errors.js';
import type { Draft, Move } from './wire.js';

/** The act that a decision is; throws NotAllowed if it is none of the deal's moves. */
export function draftOf<T>(decision: Act, deal: Deal<T>): Draft {
  const move = moveOf(decision, deal);
  const body = structuredClone(move.body);
  const offers = (decision.performative === 'PROPOSE' || decision.performative === 'COUNTER') && decision.kind === undefined;
  if (offers && deal.schemaName !== undefined && deal.schemas.includes(deal.schemaName)) body['schema'] = deal.schemaName;
  const { data, ...rest } = decision.fills;
  Object.assign(body, structuredClone(rest));
  if ('data' in decision.fills) body['data'] = decision.performative === 'INFORM' ? dataOf(body['data'], data) : data;
  if (move.fill.includes('subject') && !body['subject']) body['subject'] = deal.purpose || 'an offer';
  const recipient = decision.recipient ?? move.recipient;
  return { performative: decision.performative, body, ...(recipient === undefined ? {} : { recipient }) };
}

function moveOf<T>(decision: Act, deal: Deal<T>): Move {
  const same = deal.moves.filter((m) => m.performative === decision.performative && m.referenceId === decision.reference && kindOf(m) === decision.kind);
  // Of COMMIT's moves, the one with the outcome.
  const found = same.find((m) => decision.performative !== 'COMMIT' || m.body['outcome'] === decision.fills['outcome']);
  if (found) return found;
  const about = decision.reference ? ` of ${decision.reference}` : '';
  throw new NotAllowed(
    `${decision.performative}${about} is not allowed for you while ${deal.state}; allowed: ${deal.allowed.join(', ') || 'nothing'}`,
    { state: deal.state, allowed: [...deal.allowed] },
  );
}

/** What a move does with what was agreed. */
function kindOf({ performative, body }: Move): string | undefined {
  if (performative === 'PROPOSE') return body['type'] === 'amendment' ? 'amendment' : undefined;
  const data = (body['data'] ?? {}) as Record<string, unknown>;
  if (performative !== 'INFORM' || (data['commitmentId'] === undefined && data['disputeId'] === undefined)) return undefined;
  return (data['position'] ?? data['decision'] ?? body['type']) as string | undefined;
}

/** The data of an INFORM: the move's has what it answers. */
function dataOf(ready: unknown, said: unknown): unknown {
  if (typeof ready !== 'object' || ready === null) return said;
  const answers = (ready as { answers?: unknown }).answers;
  if (Array.isArray(answers)) {
    const given = Array.isArray(said) ? said : [said];
    return { ...ready, answers: answers.map((a: object, n) => (n < given.length ? { ...a, answer: given[n] as unknown } : a)) };
  }
  return { ...ready, ...(typeof said === 'object' && said !== null && !Array.isArray(said) ? said : { value: said }) };
}
