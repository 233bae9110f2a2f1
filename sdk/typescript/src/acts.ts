/**
 * The thirteen acts, and wait, as values that a handler returns. What an act leaves out comes from the
 * move of the snapshot that it takes: ids, and the rest of the offer that it answers.
 */

/** An offer, an item, a delegation, or an id itself. */
export type Named = string | { readonly id: string };

/** Terms as the author has them. */
export type Terms = object;

/** What a handler decides to say; the functions of this module make it. */
export interface Act {
  readonly performative: string;
  /** The id of what it answers, asks about or takes back. */
  readonly reference?: string;
  /** What it does with what was agreed, such as `result`; an act that is none of these has no kind. */
  readonly kind?: string;
  /** Members of the body that the move leaves to the sender. */
  readonly fills: Readonly<Record<string, unknown>>;
  /** Who should act on it, by default everybody. */
  readonly recipient?: string;
}

/** Do nothing now: until there is news, or until some seconds have passed. */
export interface Wait {
  readonly wait: true;
  readonly seconds?: number;
}

/** What a handler returns; undefined is `wait()`. */
export type Decision = Act | Wait | undefined | void;

/** Further members of the body, such as `assessment` in `bilateral/1`, and a recipient. */
export interface Also {
  recipient?: string;
  also?: Record<string, unknown>;
}

const idOf = (what: Named): string => (typeof what === 'string' ? what : what.id);

function act(performative: string, about: Named | undefined, fills: Record<string, unknown>, also: Also = {}): Act {
  const said = Object.fromEntries(Object.entries({ ...fills, ...also.also }).filter(([, value]) => value !== undefined));
  return {
    performative,
    fills: said,
    ...(about === undefined ? {} : { reference: idOf(about) }),
    ...(also.recipient === undefined ? {} : { recipient: also.recipient }),
  };
}

/** Make an offer. `subject` is by default the purpose of the session. */
export const propose = (terms: Terms, o: Also & { subject?: string; type?: string; message?: string } = {}): Act =>
  act('PROPOSE', undefined, { terms, subject: o.subject, type: o.type ?? 'service-agreement', message: o.message }, o);

/** Accept an offer, an invitation, a commitment, a delegation or a delivery; of a delivery also a `quantity` of it. */
export const accept = (what: Named, o: Also & { message?: string; quantity?: number } = {}): Act =>
  act('ACCEPT', what, { message: o.message, quantity: o.quantity }, o);

/** Reject what waits for an answer. */
export const reject = (what: Named, reason = 'not acceptable', o: Also & { code?: string; retryable?: boolean } = {}): Act =>
  act('REJECT', what, { reason, code: o.code ?? 'unspecified', retryable: o.retryable ?? false }, o);

/** Offer other terms instead of an offer: complete ones, not a difference. */
export const counter = (what: Named, terms: Terms, o: Also & { reason?: string; message?: string } = {}): Act =>
  act('COUNTER', what, { terms, reason: o.reason, message: o.message }, o);

/** Ask about fields of an offer, by their paths. */
export const clarify = (what: Named, questions: Record<string, string>, o: Also = {}): Act =>
  act('CLARIFY', what, { questions: Object.entries(questions).map(([field, question]) => ({ field, question })) }, o);

/** What a party owes by a COMMIT (PROTOCOL.md section 8). */
export interface Obligation {
  party: string;
  action: string;
  id?: string;
  deadline?: string;
  quantity?: number;
  unit?: string;
  amount?: { value: string; currency: string };
  verificationMethod?: string;
  acceptanceWindowMs?: number;
}

/** Commit to obligations, of an accepted offer or of none. */
export const commit = (what?: Named, o: Also & { obligations?: Obligation[]; outcome?: 'rejected' } = {}): Act =>
  act('COMMIT', what, { terms: o.obligations && { obligations: o.obligations }, outcome: o.outcome }, o);

/** Have another agent check something (`advisory`), or act (`limited`, `full`), about one offer or all. */
export const delegate = (
  target: string,
  o: Also & { about?: Named; scope?: string; authority?: 'full' | 'limited' | 'advisory'; validUntil?: string } = {},
): Act =>
  act('DELEGATE', undefined, {
    targetAgent: target,
    scope: o.scope ?? 'check the offer',
    authority: o.authority ?? 'advisory',
    referenceId: o.about && idOf(o.about),
    validUntil: o.validUntil,
  }, o);

/** Take back your own offer, question, invitation or delegation, or give back a delegation to you. */
export const withdraw = (what: Named, reason?: string, o: Also = {}): Act => act('WITHDRAW', what, { reason }, o);

/** Say a fact. */
export const inform = (data: unknown, o: Also = {}): Act => act('INFORM', undefined, { data }, o);

/** Answer the fields of a CLARIFY in their order, a QUERY, or a delegation with the result of a check. */
export const answer = (what: Named, data: unknown, o: Also = {}): Act => act('INFORM', what, { data }, o);

/** Ask something that is about no offer. */
export const query = (subject: string, o: Also & { type?: string } = {}): Act =>
  act('QUERY', undefined, { subject, queryType: o.type ?? 'question' }, o);

/** Remark something for the record. */
export const observe = (subject: string, data?: unknown, o: Also = {}): Act => act('OBSERVE', undefined, { subject, data }, o);

export interface EscalateOptions extends Also {
  why?: string;
  reason?: 'authority-limit' | 'confidence-low' | 'policy-ambiguous' | 'adversarial-detected';
  urgency?: 'low' | 'medium' | 'high' | 'critical';
  suggest?: string;
  context?: Record<string, unknown>;
}

/** Ask a human of your organisation. The session waits until one has decided. */
export const escalate = (about?: Named, o: EscalateOptions = {}): Act =>
  act('ESCALATE', undefined, {
    reason: o.reason ?? 'authority-limit',
    urgency: o.urgency ?? 'medium',
    context: { why: o.why ?? '', ...o.context },
    referenceId: about && idOf(about),
    suggestedAction: o.suggest,
  }, o);

/** A file by its digest, which `digestOf` gives. */
export interface Evidence {
  kind: string;
  digest: string;
  uri?: string;
  mediaType?: string;
  note?: string;
}

const carriesOut = (kind: string, about: Named | undefined, data: Record<string, unknown>, also: Also): Act => ({
  ...act('INFORM', about, { data: Object.fromEntries(Object.entries(data).filter(([, value]) => value !== undefined)) }, also),
  kind,
});

/** Say that you delivered what an obligation of yours asks for: all that is due, or a quantity of it. */
export const deliver = (obligation: Named, o: Also & { quantity?: number; evidence?: Evidence[] } = {}): Act =>
  carriesOut('result', obligation, { quantity: o.quantity, evidence: o.evidence }, o);

/** Report progress with an obligation of yours, which changes nothing. */
export const report = (obligation: Named, data: unknown, o: Also = {}): Act => carriesOut('progress', obligation, { data }, o);

/** Do without what another party owes. */
export const waive = (obligation: Named, reason: string, o: Also = {}): Act => carriesOut('waiver', obligation, { reason }, o);

/** Propose other obligations of a commitment, which every party has to accept. */
export const amend = (commitment: Named, obligations: Obligation[], o: Also & { message?: string } = {}): Act =>
  ({ ...act('PROPOSE', commitment, { terms: { obligations }, message: o.message }, o), kind: 'amendment' });

export interface DisputeOptions extends Also {
  ground: 'non-delivery' | 'late' | 'mismatch' | 'unauthorized-change' | 'escrow' | 'other';
  claim: string;
  remedy?: string;
  /** From 1 to 5. */
  severity?: 1 | 2 | 3 | 4 | 5;
  evidence?: Evidence[];
}

/** Dispute an entry, by its hash. */
export const dispute = (subject: string, o: DisputeOptions): Act =>
  carriesOut('dispute', undefined, { subject, ground: o.ground, claim: o.claim, remedy: o.remedy, severity: o.severity ?? 1, evidence: o.evidence }, o);

/** Concede a dispute, which ends it. */
export const concede = (dispute: Named, reason?: string, o: Also = {}): Act => carriesOut('concede', dispute, { comment: reason }, o);

/** Deny what a dispute claims. */
export const deny = (dispute: Named, reason: string, o: Also = {}): Act => carriesOut('deny', dispute, { comment: reason }, o);

/** Offer a remedy; the dispute ends once the side that filed it accepts. */
export const compensate = (dispute: Named, remedy: string, o: Also & { reason?: string; evidence?: Evidence[] } = {}): Act =>
  carriesOut('offer', dispute, { remedy, comment: o.reason, evidence: o.evidence }, o);

/** Decide a dispute for the side that filed it, as its arbiter. */
export const uphold = (dispute: Named, reason: string, award?: unknown, o: Also = {}): Act => carriesOut('upheld', dispute, { reason, award }, o);

/** Decide a dispute against the side that filed it, as its arbiter. */
export const dismiss = (dispute: Named, reason: string, award?: unknown, o: Also = {}): Act => carriesOut('dismissed', dispute, { reason, award }, o);

/** Decide a dispute for both sides in part, as its arbiter. */
export const split = (dispute: Named, reason: string, award?: unknown, o: Also = {}): Act => carriesOut('split', dispute, { reason, award }, o);

/** End the session. */
export const close = (o: Also & { outcome?: 'completed' | 'abandoned' | 'failed'; summary?: string; reason?: string } = {}): Act =>
  act('CLOSE', undefined, { outcome: o.outcome ?? 'abandoned', summary: o.summary, reason: o.reason }, o);

/** End a session that came to what it was for. */
export const complete = (summary?: string): Act => close({ outcome: 'completed', ...(summary === undefined ? {} : { summary }) });

/** Do nothing now; `on` is for the reader of the code. */
export const wait = (_on?: unknown, seconds?: number): Wait => ({ wait: true, ...(seconds === undefined ? {} : { seconds }) });
