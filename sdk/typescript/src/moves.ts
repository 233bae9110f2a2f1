/** A decision becomes an act: one of the snapshot's moves, filled in. */

import type { Act } from './acts.js';
import type { Deal } from './deal.js';
import { NotAllowed, TermsError } from './errors.js';
import type { Draft, Move } from './wire.js';

/** The act that a decision is; throws NotAllowed if it is none of the deal's moves, nor an ACCEPT of an open offer. */
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

/** The act, if JSON can say its terms; throws a TermsError that names the path of the first value that it cannot. */
export function checked(decision: Act): Act {
  if (!('terms' in decision.fills)) return decision;
  const { terms } = decision.fills;
  if (!isPlain(terms)) throw new TermsError(`terms is ${shown(terms)}: give a plain object`);
  exact(terms, 'terms');
  return decision;
}

function exact(value: unknown, path: string): void {
  if (Array.isArray(value)) for (const [n, item] of value.entries()) exact(item, `${path}[${n}]`);
  else if (isPlain(value)) {
    for (const [name, member] of Object.entries(value)) {
      exact(name, `a name in ${path}`);
      exact(member, `${path}.${name}`);
    }
  } else if (value === undefined) throw new TermsError(`${path} is undefined: give it a value, or leave it out`);
  else if (!isExact(value)) throw new TermsError(`${path} is ${shown(value)}, which JSON cannot say exactly: send it as text`);
}

function isExact(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return value === null || typeof value === 'boolean' || (typeof value === 'string' && !/\p{Surrogate}/u.test(value)); // half a character
}

/** Whether an object is of no class. Objects of other realms, such as a test's, have another Object.prototype. */
function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const of = Object.getPrototypeOf(value) as object | null;
  return of === null || Object.getPrototypeOf(of) === null;
}

function shown(value: unknown): string {
  return typeof value === 'object' && value !== null ? `of class ${value.constructor.name}` : `the ${typeof value} ${String(value).slice(0, 40)}`;
}

const answers = new Set(['ACCEPT', 'REJECT', 'COUNTER', 'CLARIFY', 'WITHDRAW']); // which name what they are about

function moveOf<T>(decision: Act, deal: Deal<T>): Move {
  const same = deal.moves.filter((m) => m.performative === decision.performative && m.referenceId === decision.reference && kindOf(m) === decision.kind);
  // Of COMMIT's moves, the one with the outcome.
  const found = same.find((m) => decision.performative !== 'COMMIT' || m.body['outcome'] === decision.fills['outcome']);
  if (found) return found;
  if (decision.performative === 'ACCEPT' && deal.offers.some((o) => o.id === decision.reference && o.open && !o.mine)) {
    return { performative: 'ACCEPT', body: { referenceId: decision.reference }, fill: [], says: '' }; // the broker says why not
  }
  const about = decision.reference ? ` of ${decision.reference}` : '';
  const why = answers.has(decision.performative) && !decision.reference
    ? `${decision.performative} names no offer: theirOffer is undefined while none of another side is open`
    : `${decision.performative}${about} is not allowed for you while ${deal.state}`;
  throw new NotAllowed(
    `${why}; allowed: ${deal.allowed.join(', ') || 'nothing'}`,
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
