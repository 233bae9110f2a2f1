/** What can go wrong: the protocol's codes, and few of the SDK's own. */

import type { Deal } from './deal.js';

/** Any error of this package. */
export class ParleyError extends Error {
  override name = 'ParleyError';
}

/** Terms do not fit the author's model, or cannot be sent as they are. */
export class TermsError extends ParleyError {
  override name = 'TermsError';
}

/** The broker did not answer in time. What was sent may have been accepted: the same again is safe. */
export class NoAnswer extends ParleyError {
  override name = 'NoAnswer';
}

/** A handler said act after act, and nobody else said anything. It rests until somebody does. */
export class LoopError extends ParleyError {
  override name = 'LoopError';
}

/** Some agents of a tender failed; the others did not. */
export class TenderError<T = unknown> extends ParleyError {
  override name = 'TenderError';
  /** `deals` are those with the others, in the order of the agents; `failed` says why, by the agent. */
  constructor(readonly deals: readonly Deal<T>[], readonly failed: ReadonlyMap<string, unknown>) {
    const why = [...failed].map(([agent, error]) => `${agent}: ${error instanceof Error ? error.message : String(error)}`).join('; ');
    super(`${failed.size} of ${failed.size + deals.length} failed, the others are in deals: ${why}`);
  }
}

/** What a refusal says beside its code and its message. */
export interface RefusalInit {
  details?: unknown;
  retryable?: boolean;
  /** Seconds to wait, where the broker says so. */
  retryAfter?: number;
}

/** The broker, or this package before it, refused something; nothing happened. */
export class Refusal extends ParleyError {
  override name = 'Refusal';
  readonly details: unknown;
  /** The same may be accepted later. */
  readonly retryable: boolean;
  readonly retryAfter: number | undefined;

  constructor(readonly code: string, readonly reason: string, init: RefusalInit = {}) {
    super(`${code}: ${reason}`);
    this.details = init.details;
    this.retryable = init.retryable ?? false;
    this.retryAfter = init.retryAfter;
  }

  /** The performatives that the caller may send instead. */
  get allowed(): string[] {
    const allowed = (this.details as { allowed?: unknown } | undefined)?.allowed;
    return Array.isArray(allowed) ? allowed.map(String) : [];
  }
}

export class Malformed extends Refusal {
  override name = 'Malformed';
  constructor(reason: string, init?: RefusalInit) { super('malformed', reason, init); }
}

export class VersionUnsupported extends Refusal {
  override name = 'VersionUnsupported';
  constructor(reason: string, init?: RefusalInit) { super('version_unsupported', reason, init); }
}

export class UnknownPerformative extends Refusal {
  override name = 'UnknownPerformative';
  constructor(reason: string, init?: RefusalInit) { super('unknown_performative', reason, init); }
}

export class StaleTimestamp extends Refusal {
  override name = 'StaleTimestamp';
  constructor(reason: string, init?: RefusalInit) { super('stale_timestamp', reason, init); }
}

export class SignatureInvalid extends Refusal {
  override name = 'SignatureInvalid';
  constructor(reason: string, init?: RefusalInit) { super('signature_invalid', reason, init); }
}

export class Unauthorized extends Refusal {
  override name = 'Unauthorized';
  constructor(reason: string, init?: RefusalInit) { super('unauthorized', reason, init); }
}

export class AuthorityExceeded extends Refusal {
  override name = 'AuthorityExceeded';
  constructor(reason: string, init?: RefusalInit) { super('authority_exceeded', reason, init); }
}

export class OwnProposal extends Refusal {
  override name = 'OwnProposal';
  constructor(reason: string, init?: RefusalInit) { super('own_proposal', reason, init); }
}

export class UnknownSession extends Refusal {
  override name = 'UnknownSession';
  constructor(reason: string, init?: RefusalInit) { super('unknown_session', reason, init); }
}

export class UnknownAgent extends Refusal {
  override name = 'UnknownAgent';
  constructor(reason: string, init?: RefusalInit) { super('unknown_agent', reason, init); }
}

export class WrongState extends Refusal {
  override name = 'WrongState';
  constructor(reason: string, init?: RefusalInit) { super('wrong_state', reason, init); }
}

/** The decision is none of the snapshot's moves, so it was not sent. */
export class NotAllowed extends WrongState {
  override name = 'NotAllowed';
  constructor(reason: string, details: unknown = {}) { super(reason, { details }); }
}

export class WrongTurn extends Refusal {
  override name = 'WrongTurn';
  constructor(reason: string, init?: RefusalInit) { super('wrong_turn', reason, init); }
}

export class Duplicate extends Refusal {
  override name = 'Duplicate';
  constructor(reason: string, init?: RefusalInit) { super('duplicate', reason, init); }
}

/** The session went on since the decision was taken: decide again. */
export class ChainConflict extends Refusal {
  override name = 'ChainConflict';
  constructor(reason: string, init?: RefusalInit) { super('chain_conflict', reason, init); }
}

export class ProposalUnknown extends Refusal {
  override name = 'ProposalUnknown';
  constructor(reason: string, init?: RefusalInit) { super('proposal_unknown', reason, init); }
}

export class ProposalNotOpen extends Refusal {
  override name = 'ProposalNotOpen';
  constructor(reason: string, init?: RefusalInit) { super('proposal_not_open', reason, init); }
}

export class ClarificationPending extends Refusal {
  override name = 'ClarificationPending';
  constructor(reason: string, init?: RefusalInit) { super('clarification_pending', reason, init); }
}

export class EscalationResolved extends Refusal {
  override name = 'EscalationResolved';
  constructor(reason: string, init?: RefusalInit) { super('escalation_resolved', reason, init); }
}

export class TooLarge extends Refusal {
  override name = 'TooLarge';
  constructor(reason: string, init?: RefusalInit) { super('too_large', reason, init); }
}

export class SchemaInvalid extends Refusal {
  override name = 'SchemaInvalid';
  constructor(reason: string, init?: RefusalInit) { super('schema_invalid', reason, init); }
}

export class SchemaUnsupported extends Refusal {
  override name = 'SchemaUnsupported';
  constructor(reason: string, init?: RefusalInit) { super('schema_unsupported', reason, init); }
}

export class ModeViolation extends Refusal {
  override name = 'ModeViolation';
  constructor(reason: string, init?: RefusalInit) { super('mode_violation', reason, init); }
}

export class SessionEscalated extends Refusal {
  override name = 'SessionEscalated';
  constructor(reason: string, init?: RefusalInit) { super('session_escalated', reason, init); }
}

export class InsufficientTrust extends Refusal {
  override name = 'InsufficientTrust';
  constructor(reason: string, init?: RefusalInit) { super('insufficient_trust_score', reason, init); }
}

export class RateLimited extends Refusal {
  override name = 'RateLimited';
  constructor(reason: string, init?: RefusalInit) { super('rate_limited', reason, init); }
}

export class Unavailable extends Refusal {
  override name = 'Unavailable';
  constructor(reason: string, init?: RefusalInit) { super('unavailable', reason, init); }
}

const classes = {
  malformed: Malformed,
  version_unsupported: VersionUnsupported,
  unknown_performative: UnknownPerformative,
  stale_timestamp: StaleTimestamp,
  signature_invalid: SignatureInvalid,
  unauthorized: Unauthorized,
  authority_exceeded: AuthorityExceeded,
  own_proposal: OwnProposal,
  unknown_session: UnknownSession,
  unknown_agent: UnknownAgent,
  wrong_state: WrongState,
  wrong_turn: WrongTurn,
  duplicate: Duplicate,
  chain_conflict: ChainConflict,
  proposal_unknown: ProposalUnknown,
  proposal_not_open: ProposalNotOpen,
  clarification_pending: ClarificationPending,
  escalation_resolved: EscalationResolved,
  too_large: TooLarge,
  schema_invalid: SchemaInvalid,
  schema_unsupported: SchemaUnsupported,
  mode_violation: ModeViolation,
  session_escalated: SessionEscalated,
  insufficient_trust_score: InsufficientTrust,
  rate_limited: RateLimited,
  unavailable: Unavailable,
} as const;

/** A code of the protocol (PROTOCOL.md section 9). */
export type Code = keyof typeof classes;

export const codes = Object.keys(classes) as Code[];

/** Whether an error is a refusal with one of the codes. */
export function isRefused(error: unknown, ...which: Code[]): error is Refusal {
  return error instanceof Refusal && (which.length === 0 || which.some((code) => code === error.code));
}

/** Whether a refusal is of the program itself, such as of its token, whatever it says. @internal */
export function ofProgram(error: Refusal): boolean {
  return isRefused(error, 'unauthorized', 'signature_invalid', 'version_unsupported');
}

/** Whether the same may be answered later, without anybody's doing. @internal */
export function passes(error: unknown): boolean {
  return error instanceof NoAnswer || isRefused(error, 'unavailable', 'rate_limited');
}

/** Whether an error follows from a session, and comes again. @internal */
export function lasts(error: unknown): boolean {
  return error instanceof TermsError || error instanceof NotAllowed || error instanceof LoopError;
}

/** The refusal that a broker's error is, as NATS or HTTP has it. */
export function refusalOf(error: Record<string, unknown>, retryAfter?: number): Refusal {
  const code = String(error['code'] ?? '');
  const reason = String(error['message'] ?? error['detail'] ?? code);
  const init: RefusalInit = {
    details: error['details'],
    retryable: error['retryable'] === true,
    ...(retryAfter === undefined ? {} : { retryAfter }),
  };
  return Object.hasOwn(classes, code) ? new classes[code as Code](reason, init) : new Refusal(code, reason, init); // of a newer broker
}
