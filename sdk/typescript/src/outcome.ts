/**
 * Reads what became of a session out of its entries: the agreements, the obligations and the disputes. The entries are
 * taken to be genuine, so that the broker accepted each by the rules: only what they do is told here, and whether the time
 * for something had passed is what the broker's own entries say.
 */

import { actOf, bodyOf, idOf, sideOf, timeOf } from './agreement.js';
import type { Entry } from './verify.js';

type Members = Record<string, unknown>;

/** A member of the session, as the broker pinned it. */
export interface Pinned extends Members {
  agentId: string;
  kind: string;
  authority: string;
  key?: string;
  didKey?: string;
  did?: string;
  ccc?: { regulatory_classification: string };
  policy?: { format?: number };
}

/** What an ACCEPT may name: an invitation, a proposal, a commitment, or an amendment of one. */
interface Offer {
  id: string;
  kind: 'invitation' | 'proposal' | 'commitment' | 'amendment';
  sequence: number;
  side: string;
  addressed: boolean;
  about: string; // the proposal or commitment that it carries out, counters or amends
  body: Members;
  open: boolean;
  accepted: string[];
}

/** Who agreed, and the entries by which; 0 is none. */
export interface Agreement {
  name: string;
  proposal: string;
  parties: string[]; // who made the offer comes first
  offer: number;
  acceptance: number;
  commitment: string;
  commit: number;
  close: number;
  confirmed: number;
  signatures: Record<string, string>; // made after the acceptance
}

interface Commitment {
  id: string;
  parties: string[];
  entries: number[];
}

interface Obligation {
  commitment: string;
  id: string;
  party: string;
  action: string;
  holds: boolean; // keeps its session open
  remains: bigint | undefined; // as exactly makes it
  accepted?: bigint;
  delivery?: { quantity: bigint | undefined; late: boolean } | undefined;
  breached: boolean;
  breaches: number;
  disputes: number;
  ended: string;
}

interface Dispute {
  id: string;
  by: string;
  ground: string;
  entry: number;
  entries: number[];
  commitment: string;
  obligation: string;
  status: string;
}

const asp = 'asp/1'; // where an accepted proposal binds nobody until a COMMIT, or a CLOSE, carries it out
const since: Record<string, number> = { 'bilateral/1': 6 }; // the format since which an ACCEPT makes an agreement, if not the first

/** What the entries so far have led to. */
export class Outcome {
  readonly agreements: Agreement[] = [];
  readonly principals: string[] = [];
  /** Who came, in this order, each as it was pinned first. */
  readonly pinned = new Map<string, Pinned>();
  /** All keys that were pinned for each, the oldest first. */
  readonly keys = new Map<string, string[]>();
  mode = '';
  /** Of the invitation in force. */
  policy: Members = {};

  readonly #last = new Map<string, Pinned>();
  readonly #offers = new Map<string, Offer>();
  readonly #slots = new Map<string, string>(); // in convergent/1: which offer each accepts
  readonly #obligations = new Map<string, Obligation>();
  readonly #deliveries = new Map<string, string>();
  readonly #about = new Map<number, string>(); // the obligation that an entry is about
  readonly #disputes = new Map<string, Dispute>();
  readonly #remedies = new Map<string, string>();
  readonly #hashes = new Map<string, number>();
  readonly #carried: Commitment[] = [];
  #format = 0;
  #terms: Agreement[] = []; // accepted proposals that bind nobody yet
  #signed = new Set<string>(); // in binding/1: who has signed the offer
  #asked = false; // people are to confirm
  #open = 0; // commitments
  #accepted = 0;
  #executing = false;
  #leaving: string[] = [];

  /** As a bundle has them. */
  get obligations(): Members[] {
    return [...this.#obligations].map(([key, o]) => {
      const entries = this.#carried.filter((c) => c.id === o.commitment).flatMap((c) => c.entries);
      for (const [at, about] of this.#about) if (about === key) entries.push(at);
      return {
        commitmentId: o.commitment, obligation: o.id, party: o.party, action: o.action, status: statusOf(o),
        ...(o.breaches > 0 && { breaches: o.breaches }), entries: inOrder(entries.filter((n) => n > 0)),
      };
    });
  }

  /** As a bundle has them. */
  get disputes(): Members[] {
    return [...this.#disputes.values()].map((d) => ({ disputeId: d.id, by: d.by, ground: d.ground, status: d.status, entries: inOrder([d.entry, ...d.entries]) }));
  }

  /** Takes in the next entry. */
  add(e: Entry): void {
    this.#pin(e);
    this.#hashes.set(e.hash, e.sequence);
    const [body, act, side] = [bodyOf(e), actOf(e), sideOf(e)];
    const about = text(body['referenceId']);
    if (e.sender.startsWith('broker://')) {
      if (act === 'INFORM') this.#happened(e.sequence, body['data'] as Members);
      return;
    }
    if (act === 'PROPOSE' || act === 'COUNTER') this.#offered(e, body, side, about);
    else if (act === 'COMMIT') {
      this.#offers.set(idOf(e), this.#offer(e, 'commitment', body, side, about));
      this.#open++;
      if (this.mode === 'convergent/1') this.#converged(e, body, about);
    } else if (act === 'ACCEPT') this.#accept(e, body, side, about);
    else if (act === 'REJECT' || act === 'WITHDRAW') this.#refused(e, act, side, about);
    else if (act === 'INFORM') this.#informed(e, body, side);
    else if (act === 'CLOSE') this.#closed(e, body, side);
    this.#execute(e);
  }

  #pin(e: Entry): void {
    for (const m of e.joined as Pinned[]) {
      if (m.kind === 'broker') {
        if (m.policy) this.#format = m.policy.format ?? 1;
        continue;
      }
      if (m.authority === 'arbiter') continue;
      const before = this.#last.get(m.agentId);
      if (!before) {
        this.pinned.set(m.agentId, m);
        this.keys.set(m.agentId, []);
        if (e.sequence === 0 && m.authority === 'principal') this.principals.push(m.agentId);
      }
      for (const name of ['key', 'didKey'] as const) if (m[name] && m[name] !== before?.[name]) this.keys.get(m.agentId)!.push(m[name]);
      this.#last.set(m.agentId, m);
    }
  }

  // --- negotiation

  #offer(e: Entry, kind: Offer['kind'], body: Members, side: string, about: string): Offer {
    return { id: idOf(e), kind, sequence: e.sequence, side, addressed: 'recipient' in e.sent, about, body, open: true, accepted: [] };
  }

  #offered(e: Entry, body: Members, side: string, about: string): void {
    const o = this.#offer(e, 'proposal', body, side, about);
    const countered = actOf(e) === 'COUNTER' ? this.#offers.get(about) : undefined;
    if (this.#offers.size === 0 || countered?.kind === 'invitation') {
      o.kind = 'invitation';
      const terms = body['terms'] as { mode?: string; policy?: Members };
      this.mode = terms.mode || asp;
      this.policy = terms.policy ?? {};
    } else if (this.#executing) o.kind = 'amendment';
    else if (countered?.kind === 'commitment') this.#ends(countered, false);
    if (this.mode === 'binding/1') this.#signed = new Set(body['agreementSignature'] ? [side] : []);
    this.#offers.set(o.id, o);
  }

  #ends(commitment: Offer, accepted: boolean): void {
    if (!commitment.open) return;
    commitment.open = false;
    this.#open--;
    if (accepted) this.#accepted++;
  }

  #accept(e: Entry, body: Members, side: string, about: string): void {
    const o = this.#offers.get(about);
    if (!o) {
      const delivered = this.#deliveries.get(about);
      const offered = this.#remedies.get(about);
      if (!this.#executing) return;
      if (delivered !== undefined) this.#take(e.sequence, this.#obligation(delivered), exactly(body['quantity']), 'fulfilled');
      else if (offered !== undefined) this.#decided(e.sequence, this.#dispute(offered), 'agreed');
    } else if (o.kind === 'proposal') this.#agreed(e, body, side, o);
    else if (o.kind !== 'invitation') {
      o.accepted.push(side);
      const needed = o.kind === 'amendment' ? this.#commitment(o.about).parties.length - 1 : o.addressed ? 1 : this.principals.length - 1;
      if (o.accepted.length >= needed) this.#allAccepted(e, o);
    }
  }

  #agreed(e: Entry, body: Members, side: string, o: Offer): void {
    if (this.mode === 'convergent/1') {
      this.#slots.set(side, o.id);
      return;
    }
    if (this.mode === 'binding/1' && body['agreementSignature']) this.#signed.add(side);
    if (o.side === side || this.#format < (since[this.mode] ?? 1)) return;
    const made = agreement(o.id, o.id, [o.side, side], o.sequence, e.sequence);
    this.#asked = this.mode === 'bilateral/1' && this.policy['confirm'] === true;
    if (this.#asked || (this.mode === asp && this.#format >= 4)) this.#terms.push(made);
    else this.agreements.push(made);
  }

  #allAccepted(e: Entry, o: Offer): void {
    if (o.kind === 'amendment') {
      for (const promised of promises(o.body['terms'])) {
        this.#oblige(o.about, promised);
        this.#about.set(e.sequence, keyOf(o.about, promised.id));
      }
      this.#leaving = [];
      return;
    }
    this.#ends(o, true);
    if (this.mode !== asp || this.#format < 4 || o.body['outcome'] === 'rejected') return;
    const made = agreement(o.id, '', [o.side], o.sequence, e.sequence);
    made.commitment = o.id;
    let before: string[] = [];
    const p = this.#offers.get(o.about);
    if (p) {
      [made.proposal, made.offer, made.commit] = [p.id, p.sequence, o.sequence];
      before = this.#terms.find((t) => t.name === p.id)?.parties ?? [p.side];
      if (this.agreements.every((a) => a.name !== p.id)) made.name = p.id;
    }
    made.parties = once([...before, o.side, ...[...this.pinned.keys()].filter((a) => o.accepted.includes(a))]);
    this.agreements.push(made);
  }

  /** A COMMIT says what all have accepted. */
  #converged(e: Entry, body: Members, about: string): void {
    const o = this.#offers.get(about);
    if (body['outcome'] === 'rejected' || !o) return;
    const accepters = [...this.pinned.keys()].filter((a) => this.#slots.get(a) === about);
    this.agreements.push(agreement(about, about, once([o.side, ...accepters]), o.sequence, e.sequence));
  }

  #refused(e: Entry, act: string, side: string, about: string): void {
    const o = this.#offers.get(about);
    const delivered = this.#deliveries.get(about);
    if (o?.kind === 'commitment') this.#ends(o, false);
    else if (o) {
      if (act === 'REJECT' && this.#slots.get(side) === about) this.#slots.delete(side);
    } else if (act === 'REJECT' && this.#executing && delivered !== undefined) this.#dueAgain(e.sequence, delivered);
  }

  #closed(e: Entry, body: Members, side: string): void {
    const owed = [...this.#obligations.values()].filter((o) => o.ended === '' && o.holds);
    if (owed.length > 0) {
      this.#leaving.push(side);
      if (!this.#carried.every((c) => c.parties.every((p) => this.#leaving.includes(p)))) return;
      for (const o of owed) [o.ended, o.delivery] = ['released', undefined];
    }
    if (this.mode !== asp || (body['outcome'] || 'completed') !== 'completed' || this.#accepted > 0 || this.#open > 0) return;
    for (const a of this.#terms) {
      a.close = e.sequence;
      this.agreements.push(a);
    }
  }

  // --- execution

  /** Begins to carry out what was agreed, once the entry has made the last of it. */
  #execute(e: Entry): void {
    const waits = this.mode === 'binding/1' && this.#signed.size < 2;
    if (this.#executing || this.#format < 7 || e.receipt.state !== 'EXECUTING' || waits) return;
    this.#executing = true;
    for (const a of this.agreements) {
      const made = this.#offers.get(a.commitment || (actOf(e) === 'COMMIT' ? idOf(e) : ''));
      let promised = made ? identified(((made.body['terms'] as Members | undefined)?.['obligations'] as Members[] | undefined) ?? []) : [];
      const c: Commitment = { id: a.proposal, parties: a.parties, entries: [a.offer, a.commit, a.acceptance, a.close, a.confirmed] };
      const proposal = this.#offers.get(a.proposal);
      if (made && promised.length > 0) c.id = made.id;
      else if (proposal) promised = promises(proposal.body['terms']);
      this.#carried.push(c);
      for (const p of promised) this.#oblige(c.id, p);
    }
  }

  #commitment(id: string): Commitment {
    return found(this.#carried.find((c) => c.id === id), id);
  }

  #obligation(key: string): Obligation {
    return found(this.#obligations.get(key), key);
  }

  #dispute(id: string): Dispute {
    return found(this.#disputes.get(id), id);
  }

  /** Enters an obligation, in place of one that it amends. */
  #oblige(commitment: string, promised: Promised): void {
    const was = this.#obligations.get(keyOf(commitment, promised.id));
    const holds = 'deadline' in promised || 'quantity' in promised || Boolean(promised['verificationMethod']);
    this.#obligations.set(keyOf(commitment, promised.id), {
      commitment, id: promised.id, party: text(promised['party']), action: text(promised['action']), holds, remains: exactly(promised['quantity']),
      breached: false, breaches: was?.breaches ?? 0, disputes: was?.disputes ?? 0, ended: '', ...(was?.accepted !== undefined && { accepted: was.accepted }),
    });
  }

  #informed(e: Entry, body: Members, side: string): void {
    const kind = body['type'] || body['informType'];
    const data = body['data'] as Members | undefined;
    if (typeof data !== 'object' || data === null || Array.isArray(data)) return;
    if (kind === 'resolution' && data['escalationId']) {
      if (!this.#asked || data['decision'] !== 'approved' || e.receipt.state === 'ESCALATED') return;
      for (const a of this.#terms) {
        a.confirmed = e.sequence;
        this.agreements.push(a);
      }
      this.#terms = [];
      return;
    }
    if (!this.#executing) {
      const last = this.agreements.at(-1);
      if (this.mode !== 'binding/1' || this.#format < 4 || !data['agreementSignature'] || !last) return;
      this.#signed.add(side);
      last.signatures[side] = text(data['agreementSignature']);
      return;
    }
    const key = keyOf(text(data['commitmentId']), String(data['obligation']));
    const o = this.#obligations.get(key);
    if (kind === 'result' && o) {
      o.delivery = { quantity: exactly(data['quantity']), late: o.breached };
      this.#deliveries.set(e.id, key);
      this.#about.set(e.sequence, key);
    } else if (kind === 'waiver' && o) {
      [o.ended, o.delivery] = ['waived', undefined];
      this.#about.set(e.sequence, key);
    } else if (kind === 'dispute') this.#file(e, data, side);
    else if ((kind === 'reply' || kind === 'resolution') && this.#disputes.has(text(data['disputeId']))) this.#replied(e, kind, data);
  }

  /** What was delivered is accepted: a quantity of it, or all. */
  #take(sequence: number, o: Obligation, quantity: bigint | undefined, how: string): void {
    const d = found(o.delivery, o.id);
    o.delivery = undefined;
    if (o.remains !== undefined) {
      const taken = quantity ?? d.quantity ?? o.remains;
      o.remains -= taken;
      o.accepted = (o.accepted ?? 0n) + taken;
    }
    if (!o.remains) o.ended = d.late && how === 'fulfilled' ? 'late' : how;
    this.#about.set(sequence, keyOf(o.commitment, o.id));
  }

  #dueAgain(sequence: number, key: string): void {
    this.#obligation(key).delivery = undefined;
    this.#about.set(sequence, key);
  }

  /** The broker enters what has passed. */
  #happened(sequence: number, data: Members): void {
    const { event } = data;
    if (event === 'breached' || event === 'deemed') {
      const key = keyOf(text(data['commitmentId']), String(data['obligation']));
      const o = this.#obligation(key);
      if (event === 'deemed') return this.#take(sequence, o, undefined, event);
      o.breached = true;
      o.breaches++;
      this.#about.set(sequence, key);
    } else if (event === 'decided' || event === 'unresolved') {
      this.#decided(sequence, this.#dispute(text(data['disputeId'])), event === 'decided' ? text(data['decision']) : event);
    }
  }

  // --- disputes

  #file(e: Entry, data: Members, side: string): void {
    const entry = found(this.#hashes.get(text(data['subject'])), text(data['subject']));
    const about = this.#obligations.get(this.#about.get(entry) ?? '');
    const d: Dispute = {
      id: text(data['disputeId']), by: side, ground: text(data['ground']), entry, entries: [e.sequence], status: 'open',
      commitment: about?.commitment ?? (entry > 0 ? this.#carried.find((c) => c.entries.includes(entry))?.id : undefined) ?? '',
      obligation: about?.id ?? '',
    };
    this.#disputes.set(d.id, d);
    this.#contest(d, 1);
  }

  #contest(d: Dispute, n: number): void {
    for (const o of this.#obligations.values()) if (o.commitment === d.commitment && (d.obligation === '' || d.obligation === o.id)) o.disputes += n;
  }

  #replied(e: Entry, kind: string, data: Members): void {
    const d = this.#dispute(text(data['disputeId']));
    if (kind === 'resolution') return this.#decided(e.sequence, d, text(data['decision']));
    d.entries.push(e.sequence);
    if (data['position'] === 'offer') this.#remedies.set(e.id, d.id);
    else if (data['position'] === 'concede') this.#decided(e.sequence, d, sideOf(e) === d.by ? 'dismissed' : 'conceded'); // people of the side that filed it give the claim up
  }

  /** A dispute ends. What was delivered and rightly disputed is due again. */
  #decided(sequence: number, d: Dispute, how: string): void {
    d.status = how;
    d.entries.push(sequence);
    this.#contest(d, -1);
    const o = this.#obligations.get(keyOf(d.commitment, d.obligation));
    if (o?.delivery && o.party !== d.by && (how === 'upheld' || how === 'conceded')) this.#dueAgain(sequence, keyOf(d.commitment, d.obligation));
  }
}

type Promised = Members & { id: string };

/** The obligations of terms, if they are in the form that a COMMIT has. */
function promises(terms: unknown): Promised[] {
  const all = isObject(terms) ? terms['obligations'] : undefined;
  return Array.isArray(all) && all.every(isPromise) ? identified(all as Members[]) : [];
}

/** Each with its id, which is its index by default; none where two have one. */
function identified(obligations: Members[]): Promised[] {
  const all = obligations.map((o, i) => ({ ...o, id: text(o['id']) || String(i) }));
  return new Set(all.map((o) => o.id)).size === all.length && all.length <= 1000 ? all : [];
}

const principal = /^(agent:\/\/[a-z0-9._-]+(\/[A-Za-z0-9._-]+)+|human:\/\/[a-z0-9._-]+\/[A-Za-z0-9._-]+)$/;
const form: Record<string, (v: unknown) => boolean> = {
  id: (v) => typeof v === 'string' && v !== '' && new TextEncoder().encode(v).length <= 128,
  party: (v) => typeof v === 'string' && principal.test(v),
  action: (v) => typeof v === 'string' && v !== '',
  deadline: (v) => typeof v === 'string' && v === v.toUpperCase() && timeOf(v) !== undefined,
  quantity: (v) => typeof v === 'number' && v > 0,
  unit: (v) => typeof v === 'string' && [...v].length <= 64,
  amount: (v) => isObject(v) && typeof v['value'] === 'number' && v['value'] >= 0 && /^[A-Z]{3}$/.test(text(v['currency'])),
  verificationMethod: (v) => typeof v === 'string',
  acceptanceWindowMs: (v) => Number.isInteger(v) && Number(v) >= 1 && Number(v) <= 31_536_000_000,
};

function isPromise(o: unknown): boolean {
  return isObject(o) && 'party' in o && 'action' in o && Object.entries(o).every(([name, value]) => !Object.hasOwn(form, name) || form[name]!(value));
}

function statusOf(o: Obligation): string {
  if (o.disputes > 0) return 'disputed';
  if (o.ended) return o.ended;
  if (o.delivery) return 'asserted';
  return o.breached ? 'breached' : o.accepted !== undefined ? 'partial' : 'due';
}

function agreement(name: string, proposal: string, parties: string[], offer: number, acceptance: number): Agreement {
  return { name, proposal, parties, offer, acceptance, commitment: '', commit: 0, close: 0, confirmed: 0, signatures: {} };
}

const places = 342; // after the point, more than any double has

/** A quantity as it is written, not as the nearest double is, in units so small that each is a whole number of them. */
function exactly(value: unknown): bigint | undefined {
  if (typeof value !== 'number') return undefined;
  const [digits = '', exponent = '0'] = String(value).split('e');
  const [whole = '', fraction = ''] = digits.split('.');
  return BigInt(whole + fraction) * 10n ** BigInt(places + Number(exponent) - fraction.length);
}

const keyOf = (commitment: string, id: string): string => JSON.stringify([commitment, id]);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const once = (all: string[]): string[] => [...new Set(all)];
const inOrder = (all: number[]): number[] => [...new Set(all)].sort((a, b) => a - b);

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function found<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new TypeError(`an entry is about ${name}, which is not there`);
  return value;
}
