/**
 * One view of a negotiation, for one side: what a handler decides on. It is a snapshot of the broker's with
 * the entries that the caller may read. It never changes; each decision gets a new one.
 */

import { TermsError } from './errors.js';
import { canonical } from './json.js';
import type { DisputeView, Entry, Move, ObligationView, OfferView, OpenView, Snapshot } from './wire.js';

/** A schema of terms: zod's, or any other of https://standardschema.dev. */
export interface TermsSchema<T> {
  readonly '~standard': {
    /** Reads terms, or says what is wrong with them. */
    readonly validate: (value: unknown) => Validated<T> | Promise<Validated<T>>;
    /** Of a Standard JSON Schema, which can be published. */
    readonly jsonSchema?: {
      /** The JSON Schema of what it reads. */
      readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>;
    } | undefined;
  };
}

type Validated<T> = { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly Issue[] };

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Quote what somebody else wrote, so that a model reads it as data. Nothing in it ends the quote. */
export function fenced(text: string, by: string): string {
  return `<quote from="${escaped(by).replaceAll('"', '&quot;')}">\n${escaped(text)}\n</quote>`;
}

/** The entry that made an offer. */
export function offerIn(entries: readonly Entry[], id: string): Entry | undefined {
  return entries.find((e) => (e.performative === 'PROPOSE' || e.performative === 'COUNTER') && e.content.body['proposalId'] === id);
}

/** An offer of a snapshot, which cuts long terms, with all of its terms, if its entry may be read. */
function whole(o: OfferView, entries: readonly Entry[]): OfferView {
  const body = o.truncated ? offerIn(entries, o.id)?.content.body : undefined;
  const terms = body?.['terms'] as OfferView['terms'];
  return body && terms ? { ...o, terms, about: text(body['subject']), changes: [{ path: 'terms', to: terms }], truncated: false } : o;
}

/** An offer. `raw` are its terms as they came; `terms` are read by the author's schema. */
export class Offer<T> {
  constructor(private readonly view: OfferView, private readonly schema: TermsSchema<T> | undefined) {}

  get id(): string { return this.view.id; }
  get by(): string { return this.view.by; }
  get mine(): boolean { return this.view.mine; }
  get subject(): string { return this.view.about ?? ''; }
  get raw(): Readonly<Record<string, unknown>> { return this.view.terms ?? {}; }
  /** The offer as a sentence, which leaves out what is long. If it is not yours, its terms are the other side's words. */
  get text(): string { return this.view.text; }
  get status(): string { return this.view.status; }
  get open(): boolean { return this.view.status === 'open'; }
  /** `raw` is cut, and you may not read the entry, which has all that an ACCEPT agrees to. */
  get truncated(): boolean { return this.view.truncated ?? false; }
  get binding(): boolean { return this.view.binding; }
  get changes(): readonly { path: string; from?: unknown; to?: unknown }[] { return this.view.changes ?? []; }
  get expires(): Date | undefined { return this.view.expires ? new Date(this.view.expires) : undefined; }

  /** The terms by the author's schema; throws TermsError if they do not fit it. */
  get terms(): T {
    if (!this.schema) throw new TermsError('this agent has no schema of terms: agent({terms}), or read offer.raw');
    if (this.truncated) throw new TermsError(`the terms of ${this.id} are cut, and you may not read the rest`);
    const read = this.schema['~standard'].validate(this.raw);
    if (read instanceof Promise) throw new TermsError('a schema of terms that answers later cannot be used');
    if (read.issues) {
      const where = read.issues.map((i) => (i.path ?? []).map((p) => String(typeof p === 'object' ? p.key : p)).join('.') || 'terms');
      throw new TermsError(`the terms of ${this.id} do not fit the schema: ${where.join(', ')}`);
    }
    return read.value;
  }
}

/** What waits for an answer: an invitation, offer, question, commitment, delegation, check or escalation. */
export interface Item {
  readonly kind: string;
  readonly id: string;
  readonly by: string;
  readonly for: readonly string[];
  readonly due: Date | undefined;
  readonly text: string;
  /** The body of an invitation, a commitment or an amendment, to which an ACCEPT agrees. */
  readonly raw: Readonly<Record<string, unknown>> | undefined;
  /** `raw` is cut; the entries have all of it. */
  readonly truncated: boolean;
}

/** A delegation: one that your side made, or one to you. */
export interface Delegation {
  readonly id: string;
  readonly target: string;
  readonly by: string;
  readonly authority: string;
  readonly scope: string;
  readonly about: string | undefined;
  readonly status: string;
  /** Data of its newest INFORM of type result. */
  readonly result: unknown;
}

/** A COMMIT to an offer that is open or was accepted. `raw` is its body. */
export interface Commitment {
  readonly id: string;
  readonly by: string;
  readonly mine: boolean;
  readonly open: boolean;
  readonly raw: Readonly<Record<string, unknown>>;
}

/** What humans of your side decided about an offer. */
export interface Approval {
  readonly id: string;
  /** Undefined while nobody has decided. */
  readonly decision: 'approved' | 'modified' | 'denied' | 'guidance' | undefined;
  /** The offer is approved as it is; if only another is, `decision` is `modified` or `approved`, and this is false. */
  readonly granted: boolean;
  readonly comment: string | undefined;
  /** What the agent may agree to, as far as it is no secret. */
  readonly authority: Readonly<Record<string, unknown>> | undefined;
}

/** An obligation and where it stands. Its `id` and that of its delivery are what acts name. */
export type Owed = Omit<ObligationView, 'delivery'> & {
  readonly id: string;
  /** What waits for an answer. */
  readonly delivery: (NonNullable<ObligationView['delivery']> & { readonly id: string }) | undefined;
};

/** A dispute, and what was replied to it: an offer is accepted by its `id`. */
export type Disputed = Omit<DisputeView, 'replies'> & {
  readonly id: string;
  readonly replies: readonly (NonNullable<DisputeView['replies']>[number] & { readonly id: string })[];
};

const by = (e: Entry): string => e.sender.agentId;
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const host = (uri: string): string => uri.replace(/^\w+:\/\//, '').split('/')[0] ?? '';

/** A negotiation as one side sees it at one entry of its transcript. */
export class Deal<T> {
  readonly offers: readonly Offer<T>[];
  readonly agreed: Offer<T> | undefined;
  readonly open: readonly Item[];
  /** What is carried out of what was agreed, the soonest due first. */
  readonly obligations: readonly Owed[];
  /** The newest first. */
  readonly disputes: readonly Disputed[];

  constructor(
    readonly view: Snapshot,
    readonly entries: readonly Entry[],
    schema: TermsSchema<T> | undefined,
    /** What was delegated to you in this session, while it waits for you. */
    readonly check: Delegation | undefined,
    /** The name under which the schema of terms is published. */
    readonly schemaName?: string,
  ) {
    this.offers = view.offers.map((o) => new Offer(whole(o, entries), schema));
    this.agreed = view.agreed && new Offer(whole(view.agreed, entries), schema);
    this.open = view.open.map(itemOf);
    this.obligations = (view.obligations ?? []).map((o) => ({
      ...o, id: `${o.commitmentId}/${o.obligation}`, delivery: o.delivery && { ...o.delivery, id: o.delivery.referenceId },
    }));
    this.disputes = (view.disputes ?? []).map((d) => ({ ...d, id: d.disputeId, replies: (d.replies ?? []).map((r) => ({ ...r, id: r.referenceId })) }));
  }

  get id(): string { return this.view.sessionId; }
  get purpose(): string { return this.view.purpose ?? ''; }
  get mode(): string { return this.view.mode; }
  get state(): string { return this.view.state; }
  /** Nothing more can be said. */
  get over(): boolean { return this.state === 'CLOSED' || this.state === 'FAILED'; }
  /** Why it is over. */
  get outcome(): string | undefined { return this.view.outcome; }
  /** The hash of the newest entry, to which a decision is tied. */
  get head(): string { return this.view.head.hash; }
  get me(): string { return this.view.you.agentId ?? ''; }
  /** inviter, invitee, delegate, standby, approver or observer. */
  get role(): string { return this.view.you.role; }
  /** The other principal; with several, the first. */
  get counterparty(): string {
    return this.view.others.find((o) => o.role === 'inviter' || o.role === 'invitee')?.agentId ?? '';
  }
  /** What your side alone may know, as the invitation said. */
  get private(): unknown { return this.view.private; }
  /** Names of the terms schemas that the invitation lists, as far as you may read it. */
  get schemas(): readonly string[] {
    const answered = this.entries.findIndex((e) => e.performative === 'ACCEPT');
    const before = this.entries.slice(0, answered < 0 ? undefined : answered);
    const invitation = before.findLast((e) => e.performative === 'PROPOSE' || e.performative === 'COUNTER'); // a countered one is another
    return (invitation?.content.body['terms'] as { schemas?: string[] } | undefined)?.schemas ?? [];
  }
  /** The newest open offer of another side. */
  get theirOffer(): Offer<T> | undefined { return this.offers.findLast((o) => o.open && !o.mine && !this.over); }
  /** Your newest open offer. */
  get myOffer(): Offer<T> | undefined { return this.offers.findLast((o) => o.open && o.mine && !this.over); }
  /** The invitation, while it waits for you. */
  get invitation(): Item | undefined { return this.open.find((i) => i.kind === 'invitation' && i.for.includes(this.me)); }
  /** Questions of a CLARIFY that wait for you. */
  get questions(): readonly Item[] { return this.open.filter((i) => i.kind === 'question' && i.for.includes(this.me)); }
  /** The session waits for your side, and you may answer. */
  get yours(): boolean { return this.view.waiting?.yours ?? false; }
  /** Your newest offer has expired or was rejected, and nothing waits for anybody: the next offer, or the end, is yours to say. */
  get lapsed(): boolean {
    const last = this.offers.at(-1);
    if (this.over || this.agreed || this.open.length > 0 || !last?.mine || !this.allows('PROPOSE')) return false;
    return last.status === 'expired' || last.status === 'rejected';
  }
  /** When the session ends if nobody answers. */
  get deadline(): Date | undefined { return this.view.waiting?.deadline ? new Date(this.view.waiting.deadline) : undefined; }
  /** Exactly what you may send now. */
  get moves(): readonly Move[] { return this.view.moves; }
  /** The performatives of the moves. */
  get allowed(): readonly string[] { return [...new Set(this.moves.map((m) => m.performative))]; }

  /** Whether an act is among the moves, of a thing if one is named. */
  allows(performative: string, about?: string | { readonly id: string }): boolean {
    const id = typeof about === 'object' ? about.id : about;
    return this.moves.some((m) => m.performative === performative && (id === undefined || m.referenceId === id));
  }

  /** Entries since you spoke last, as delivered. */
  get news(): readonly Entry[] {
    return this.entries.slice(this.entries.findLastIndex((e) => by(e) === this.me) + 1);
  }

  /** How many offers you have made. */
  get round(): number {
    const mine = this.entries.filter((e) => by(e) === this.me && (e.performative === 'PROPOSE' || e.performative === 'COUNTER'));
    return mine.filter((e) => e.content.body['type'] !== 'session-invitation').length;
  }

  /** A concession in equal steps: `first` before you have made an offer, `last` after `rounds` of them. */
  step(first: number, last: number, rounds = 4, places = 2): number {
    return Number((first + ((last - first) * Math.min(this.round, rounds)) / rounds).toFixed(places));
  }

  /** Your side's newest delegation to an agent, or its newest about an offer. */
  delegation(target: string, about?: string | { readonly id: string }): Delegation | undefined {
    const offer = typeof about === 'object' ? about.id : about;
    let found: Delegation | undefined;
    let newest = false; // so that what its target says belongs to it
    for (const e of this.entries) {
      const body = e.content.body;
      const ours = this.#ours(e) && by(e) !== target;
      if (e.performative === 'DELEGATE' && ours && body['targetAgent'] === target) {
        newest = offer === undefined || body['referenceId'] === offer;
        if (!newest) continue;
        found = {
          id: e.messageId, target, by: by(e), authority: text(body['authority']), scope: text(body['scope']),
          about: text(body['referenceId']) || undefined, status: 'offered', result: undefined,
        };
      } else if (e.performative === 'WITHDRAW' && ours && body['referenceId'] === found?.id) {
        if (found?.status !== 'done') found = undefined; // what was checked stays checked
      } else if (found && newest && by(e) === target) {
        const about = (body['data'] as { referenceId?: unknown } | undefined)?.referenceId ?? found.about;
        if (e.performative === 'INFORM' && body['type'] === 'result' && found.about !== undefined && about !== found.about) continue; // of another offer
        if (e.performative === 'INFORM' && body['type'] === 'result') found = { ...found, status: 'done', result: body['data'] };
        else if ((e.performative === 'REJECT' || e.performative === 'WITHDRAW') && body['referenceId'] === found.id) found = { ...found, status: 'declined' };
        else if (found.status === 'offered') found = { ...found, status: 'active' };
      }
    }
    return found;
  }

  /** Whether an entry is of your side: of the principal that you are, or act for, or of its organisation and of no other principal. */
  #ours(e: Entry): boolean {
    const mine = this.view.you.onBehalfOf ?? this.me;
    const side = (e.integrity['onBehalfOf'] as string | undefined) ?? by(e);
    const others = this.view.others.filter((o) => (o.role === 'inviter' || o.role === 'invitee') && o.agentId !== mine);
    return side === mine || (host(side) === host(mine) && !others.some((o) => o.agentId === side));
  }

  /** The newest commitment to an offer, of either side, that was not rejected or taken back. */
  commitment(offer: string | { readonly id: string }): Commitment | undefined {
    const about = typeof offer === 'string' ? offer : offer.id;
    const found = new Map<string, Commitment>();
    for (const e of this.entries) {
      const body = e.content.body;
      if (e.performative === 'COMMIT' && body['referenceId'] === about) {
        const id = text(body['commitmentId']);
        found.set(id, { id, by: by(e), mine: by(e) === this.me, open: this.open.some((i) => i.id === id), raw: body });
      } else if (e.performative === 'REJECT' || e.performative === 'WITHDRAW') found.delete(text(body['referenceId']));
    }
    return [...found.values()].at(-1);
  }

  /** What a human of your side decided when you asked about this very offer. */
  approval(offer: Offer<T>): Approval | undefined {
    let found: Approval | undefined;
    for (const e of this.entries) {
      const body = e.content.body;
      if (e.performative === 'ESCALATE' && body['referenceId'] === offer.id && this.#ours(e)) {
        found = { id: e.messageId, decision: undefined, granted: false, comment: undefined, authority: undefined };
      } else if (e.performative === 'INFORM' && body['type'] === 'resolution' && found) {
        const data = (body['data'] ?? {}) as Record<string, unknown>;
        if (data['escalationId'] === found.id && e.integrity.receipt?.state !== 'ESCALATED') { // of several that are needed, the last
          const decision = data['decision'] as Approval['decision'];
          const asked = this.open.some((i) => i.kind === 'question'); // an approved offer may be accepted once it is answered
          const granted = this.allows('ACCEPT', offer) ? decision === 'approved' || decision === 'modified'
            : decision === 'approved' && (offer.mine || !offer.open || asked);
          found = { id: found.id, decision, granted, comment: text(data['comment']) || undefined, authority: data['authority'] as Approval['authority'] };
        }
      }
    }
    return found;
  }

  /** The deal in sentences for a model. What is quoted is fenced, also what you said: it may have words of the other side. */
  text(): string {
    return [
      `A negotiation: ${this.state}, ${this.role}.`,
      ...(this.purpose ? [fenced(this.purpose, 'the invitation')] : []),
      ...this.offers.map((o) => fenced(`${o.text}\n${canonical(o.raw)}${o.truncated ? '\n(cut)' : ''}`, o.by)),
      ...this.open.map((i) => fenced(i.text, i.by)),
    ].join('\n');
  }
}

function itemOf(i: OpenView): Item {
  return { kind: i.kind, id: i.id, by: i.by, for: i.for, due: i.due ? new Date(i.due) : undefined, text: i.text, raw: i.body, truncated: i.truncated ?? false };
}
