/** What can go wrong: the protocol's codes, and few of the SDK's own. */

/** The protocol's codes (PROTOCOL.md section 9). */
export const codes = [
  'malformed', 'version_unsupported', 'unknown_performative', 'stale_timestamp', 'signature_invalid', 'unauthorized',
  'authority_exceeded', 'own_proposal', 'unknown_session', 'unknown_agent', 'wrong_state', 'wrong_turn', 'duplicate',
  'chain_conflict', 'proposal_unknown', 'proposal_not_open', 'clarification_pending', 'escalation_resolved', 'too_large',
  'schema_invalid', 'schema_unsupported', 'mode_violation', 'session_escalated', 'insufficient_trust_score', 'rate_limited', 'unavailable',
] as const;

export type Code = (typeof codes)[number];

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

  constructor(readonly code: Code | (string & {}), readonly reason: string, init: RefusalInit = {}) {
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

/** The decision is none of the snapshot's moves, so it was not sent. */
export class NotAllowed extends Refusal {
  override name = 'NotAllowed';
  constructor(reason: string, details: unknown = {}) {
    super('wrong_state', reason, { details });
  }
}

/** Whether an error is a refusal with one of the codes. */
export function isRefused(error: unknown, ...which: Code[]): error is Refusal {
  return error instanceof Refusal && (which.length === 0 || which.includes(error.code as Code));
}

/** The refusal that a broker's error is, as NATS or HTTP has it. */
export function refusalOf(error: Record<string, unknown>, retryAfter?: number): Refusal {
  const code = String(error['code'] ?? '');
  return new Refusal(code, String(error['message'] ?? error['detail'] ?? code), {
    details: error['details'],
    retryable: error['retryable'] === true,
    ...(retryAfter === undefined ? {} : { retryAfter }),
  });
}
