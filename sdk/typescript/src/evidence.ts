/**
 * Verifies the evidence of a session offline: what was agreed, and what has become of it. The rules are those of
 * `parley evidence verify` (PROTOCOL.md section 8, evidence). Without faults the transcript is genuine, and leads to the
 * agreements, obligations and disputes that the bundle says. Of a redacted bundle the chain of its entries and what is
 * there are verified; what it says of obligations and disputes is only claimed.
 * @packageDocumentation
 */

import { verifyTrusting, type AgreementFault, type Trust } from './agreement.js';
import { BrokerKeysError, trustedBy, TrustedKeys, type KeyRecord } from './brokerkeys.js';
import { canonical } from './json.js';
import { documentOf } from './made.js';
import { Outcome } from './outcome.js';
import { verifyInclusion } from './publiclog.js';
import { receiptKey, verifyReceipt } from './receipt.js';
import { noDuplicates, noHash, openSealed, readEntry, signedBy, unsigned, Verifier, type Entry, type SealedParts } from './verify.js';

type Members = Record<string, unknown>;

/** Where an obligation stands, and the entries that made it so. */
export interface ObligationEvidence {
  readonly commitmentId: string;
  readonly obligation: string;
  readonly party: string;
  readonly action: string;
  readonly status: string;
  readonly breaches?: number;
  readonly entries: readonly number[];
}

/** Where a dispute stands, and the entries that made it so. */
export interface DisputeEvidence {
  readonly disputeId: string;
  readonly by: string;
  readonly ground: string;
  readonly status: string;
  readonly entries: readonly number[];
}

interface Position {
  readonly index: number;
  readonly leaf: Members;
  readonly checkpoint: string;
  readonly proof: readonly string[];
}

interface Receipt {
  readonly acceptedAt: string;
  readonly broker: string;
  readonly signature: string;
  readonly state: string;
}

/** A bundle as `session.evidence` answers it. */
export interface EvidenceBundle {
  readonly format: string;
  readonly sessionId: string;
  readonly broker: string;
  readonly head: string;
  readonly state: string;
  readonly agreements: readonly (Members & { readonly agreement_id: string; readonly log?: Position })[];
  readonly obligations: readonly ObligationEvidence[];
  readonly disputes: readonly DisputeEvidence[];
  readonly transcript: readonly Members[];
  readonly sealed?: Record<string, SealedParts>;
  readonly ended?: Position;
  readonly receipts?: { readonly key: string; readonly agreements?: Record<string, string>; readonly session?: string };
  readonly brokerKeys?: readonly KeyRecord[];
}

/** What was verified of a bundle of evidence. Without faults it is what happened, but for what is claimed. */
export interface EvidenceReport {
  /** Absent if it is none. */
  readonly bundle?: EvidenceBundle;
  readonly faults: readonly AgreementFault[];
  /** Agreements, and the session's end, that are in the public log, by the log's key. */
  readonly logged: number;
  /** Entries of which only the hash and the receipt are there. */
  readonly withheld: number;
  /** JSON Pointers to obligations and disputes that only the bundle says: with entries withheld nobody can compute them again. */
  readonly claimed: readonly string[];
}

/** What you trust. What is not given is taken from the bundle, and proves less. */
export interface EvidenceTrust extends Trust {
  /** Of COSE Receipts, as PEM (`parley log key --receipts`). */
  receiptsKey?: string;
}

/** Check a bundle, as JSON, the bytes of a file with it, or as `session.evidence` answers it. */
export async function verifyEvidence(bundle: string | Uint8Array | object, trust: EvidenceTrust = {}): Promise<EvidenceReport> {
  const check = new Check(trust, trust.brokerKeys && (await trustedBy(trust.broker, trust.brokerKeys)));
  try {
    const json = bundle instanceof Uint8Array ? new TextDecoder('utf-8', { fatal: true }).decode(bundle) : bundle;
    const text = typeof json === 'string' ? json : canonical(json);
    noDuplicates(text);
    await check.all(shaped(JSON.parse(text)));
  } catch (error) {
    check.fault('', `is no bundle of evidence: ${(error as Error).message}`);
  }
  return check.report();
}

class Check {
  readonly #faults: AgreementFault[] = [];
  readonly #receiptsKey: string;
  readonly #trust: Trust;
  readonly #given: TrustedKeys | undefined;
  #b!: EvidenceBundle;
  #broker: string;
  #by!: TrustedKeys;
  #lines: string[] = [];
  #read = false;
  #logged = 0;
  #withheld = 0;
  #claimed: string[] = [];

  constructor({ receiptsKey = '', ...trust }: EvidenceTrust, given?: TrustedKeys) {
    this.#given = given;
    this.#trust = trust;
    this.#broker = trust.broker ?? '';
    this.#receiptsKey = receiptsKey;
  }

  fault(member: string, why: string): void {
    this.#faults.push({ member, why });
  }

  report(): EvidenceReport {
    return { faults: this.#faults, logged: this.#logged, withheld: this.#withheld, claimed: this.#claimed, ...(this.#read && { bundle: this.#b }) };
  }

  async all(b: EvidenceBundle): Promise<void> {
    this.#b = b;
    this.#read = true;
    this.#lines = b.transcript.map(canonical);
    this.#broker ||= b.broker;
    this.#by = this.#given ?? (await this.#own(b));
    if (!this.#by.has(b.broker)) this.fault('/broker', `is ${b.broker}, not the broker ${this.#broker}`);
    if (this.#lines.some(isWithheld)) {
      await this.#chain();
      this.#claimed = (['obligations', 'disputes'] as const).flatMap((kind) => b[kind].map((_, i) => `/${kind}/${i}`));
    } else await this.#replayed();
    for (const [i, document] of b.agreements.entries()) {
      const report = await verifyTrusting(document, this.#trust, this.#by);
      for (const f of report.faults) this.fault(`/agreements/${i}${f.member}`, f.why);
      if (report.logged) this.#logged++;
    }
    await this.#ended();
    await this.#receipts();
  }

  /** The keys that receipts may have by the bundle's own history. */
  async #own(b: EvidenceBundle): Promise<TrustedKeys> {
    try {
      return await TrustedKeys.of(this.#broker, b.brokerKeys);
    } catch (error) {
      if (!(error instanceof BrokerKeysError)) throw error;
      this.fault('/brokerKeys', error.message);
      return TrustedKeys.of(this.#broker);
    }
  }

  // --- the transcript

  /** The transcript is whole, and leads to what the bundle says. */
  async #replayed(): Promise<void> {
    const b = this.#b;
    const verifier = new Verifier(this.#broker, this.#by, {
      session: b.sessionId, head: b.head, length: this.#lines.length, ...(this.#trust.allowUnsigned && { allowUnsigned: true }),
    });
    const entries: Entry[] = [];
    for (const line of this.#lines) {
      const e = await verifier.add(new TextEncoder().encode(line));
      if (e) entries.push(e);
    }
    const found = verifier.end();
    for (const f of found) this.fault(`/transcript/${f.line - 1}`, `${f.rule}: ${f.why}`);
    if (found.length > 0) return;
    const outcome = new Outcome();
    const made: Members[] = [];
    try {
      for (const e of entries) {
        const parts = b.sealed?.[e.id];
        if (parts) await openSealed((e.sent['content'] as { body: Members }).body, parts);
        outcome.add(e);
      }
      for (const a of outcome.agreements) made.push(await documentOf(outcome, a, entries, b.transcript));
    } catch (error) {
      this.fault('/transcript', `cannot be followed: ${(error as Error).message}`);
      return;
    }
    for (const id of Object.keys(b.sealed ?? {}).sort()) {
      if (!entries.some((e) => e.id === id)) this.fault(`/sealed/${id}`, 'is of no entry that is here');
    }
    const { state } = entries.at(-1)!.receipt;
    if (b.state !== state) this.fault('/state', `is ${b.state}; the transcript leads to ${state}`);
    this.#same('/agreements', b.agreements.map(({ log: _, ...d }) => d), made);
    this.#same('/obligations', b.obligations, outcome.obligations);
    this.#same('/disputes', b.disputes, outcome.disputes);
  }

  #same(member: string, says: readonly unknown[], made: readonly unknown[]): void {
    if (says.length !== made.length) this.fault(member, `has ${says.length} items; the transcript makes ${made.length}`);
    for (const [i, one] of says.slice(0, made.length).entries()) {
      if (canonical(one) !== canonical(made[i])) this.fault(`${member}/${i}`, 'is not what the transcript makes');
    }
  }

  /** Each entry follows the one before, and the broker accepted it. Who signed is checked of those that are there. */
  async #chain(): Promise<void> {
    const keys = new Map<string, string>();
    let [head, before] = [noHash, ''];
    if (Object.keys(this.#b.sealed ?? {}).length > 0) this.fault('/sealed', 'goes with a whole transcript only');
    for (const [i, line] of this.#lines.entries()) {
      const at = `/transcript/${i}`;
      let [hash, receipt] = ['', {} as Receipt];
      if (isWithheld(line)) {
        const { withheld } = this.#b.transcript[i] as { withheld: Members };
        exact(withheld, { hash: 'text', receipt: 'object' });
        exact(withheld['receipt'], { acceptedAt: 'text', broker: 'text', signature: 'text', state: 'text' });
        [hash, receipt] = [withheld['hash'] as string, withheld['receipt'] as Receipt];
        this.#withheld++;
      } else {
        let e: Entry;
        try {
          e = await readEntry(new TextEncoder().encode(line));
        } catch (error) {
          this.fault(at, (error as Error).message);
          return;
        }
        [hash, receipt] = [e.hash, e.receipt];
        if (e.previous !== head || e.sequence !== i || e.recomputed !== hash || e.session !== this.#b.sessionId) this.fault(at, 'does not follow the entry before');
        for (const m of e.joined) keys.set(m.agentId, m.key ?? '');
        const key = keys.get(e.sender);
        if (key && e.signature && !(await signedBy(key, canonical(unsigned(e.sent)), e.signature))) this.fault(at, `${e.sender} did not sign it`);
      }
      if (!(await this.#by.receipted(hash, receipt))) this.fault(at, 'the broker did not sign that it accepted this hash');
      if (receipt.acceptedAt < before) this.fault(at, 'was accepted before the entry before it');
      [head, before] = [hash, receipt.acceptedAt];
    }
    if (head !== this.#b.head) this.fault('/head', `is ${this.#b.head}; the transcript ends with ${head}`);
    const { state } = this.#last();
    if (state !== this.#b.state) this.fault('/state', `is ${this.#b.state}; the receipt of the last entry says ${state}`);
  }

  /** The receipt of the last entry. */
  #last(): Receipt {
    const last = this.#b.transcript.at(-1) as { withheld?: { receipt: Receipt }; integrity: { receipt: Receipt } };
    return (last.withheld ?? last.integrity).receipt;
  }

  // --- the public log

  async #ended(): Promise<void> {
    const { ended, head } = this.#b;
    if (!ended) return;
    if (canonical(ended.leaf) !== canonical({ type: 'session', hash: head, at: this.#last().acceptedAt })) {
      this.fault('/ended/leaf', "is not the leaf of this session's end");
    }
    if (!this.#trust.logKey) return;
    try {
      await verifyInclusion(ended.leaf, ended.index, ended.proof, ended.checkpoint, this.#trust.logKey);
      this.#logged++;
    } catch (error) {
      this.fault('/ended', (error as Error).message);
    }
  }

  async #receipts(): Promise<void> {
    const { agreements, ended, receipts } = this.#b;
    if (!receipts) {
      if (ended || agreements.some((d) => d.log)) this.fault('/receipts', 'are missing');
      return;
    }
    try {
      const key = receiptKey(receipts.key).join();
      if (this.#receiptsKey && receiptKey(this.#receiptsKey).join() !== key) this.fault('/receipts/key', 'is another key than the one given');
    } catch (error) {
      this.fault('/receipts/key', (error as Error).message);
      return;
    }
    const all = new Map(Object.entries(receipts.agreements ?? {}));
    for (const { agreement_id: id, log } of agreements) {
      await this.#receipt(`/receipts/agreements/${id}`, log, all.get(id));
      all.delete(id);
    }
    if (all.size > 0) this.fault('/receipts/agreements', 'has receipts of other agreements');
    await this.#receipt('/receipts/session', ended, receipts.session);
  }

  async #receipt(at: string, position: Position | undefined, receipt: string | undefined): Promise<void> {
    if ((position === undefined) !== (receipt === undefined)) this.fault(at, 'a receipt goes with a position in the public log');
    if (!position || receipt === undefined) return;
    try {
      const raw = atob(receipt);
      if (btoa(raw) !== receipt) throw new TypeError('the receipt is not in base64');
      await verifyReceipt(Uint8Array.from(raw, (c) => c.charCodeAt(0)), this.#b.receipts!.key, position.leaf, position.index, position.checkpoint);
    } catch (error) {
      this.fault(at, (error as Error).message);
    }
  }
}

// --- the form

type Kind = 'text' | 'whole' | 'list' | 'object';

const forBundle: Record<string, Kind> = {
  format: 'text', sessionId: 'text', broker: 'text', head: 'text', state: 'text', agreements: 'list', obligations: 'list', disputes: 'list', transcript: 'list',
};
const forObligation: Record<string, Kind> = { commitmentId: 'text', obligation: 'text', party: 'text', action: 'text', status: 'text', entries: 'list' };
const forDispute: Record<string, Kind> = { disputeId: 'text', by: 'text', ground: 'text', status: 'text', entries: 'list' };
const forPosition: Record<string, Kind> = { index: 'whole', leaf: 'object', checkpoint: 'text', proof: 'list' };

/** The bundle, if it has the members of one, and no others. */
function shaped(read: unknown): EvidenceBundle {
  exact(read, forBundle, { sealed: 'object', ended: 'object', receipts: 'object', brokerKeys: 'list' });
  const b = read as unknown as EvidenceBundle;
  if (b.format !== 'parley-evidence/1') throw new TypeError(`its format is ${JSON.stringify(b.format)}`);
  if (b.transcript.length === 0) throw new TypeError('the transcript is empty');
  for (const o of b.obligations) exact(o, forObligation, { breaches: 'whole' });
  for (const d of b.disputes) exact(d, forDispute);
  for (const { entries } of [...b.obligations, ...b.disputes]) for (const n of entries) if (!isOf.whole(n)) throw new TypeError('an entry is no number of one');
  if (b.obligations.some((o) => o.breaches === 0)) throw new TypeError('breaches is 0');
  for (const position of [b.ended, ...b.agreements.map((d) => d.log)]) if (position !== undefined) exact(position, forPosition);
  for (const parts of Object.values(b.sealed ?? {})) {
    if (!isOf.object(parts)) throw new TypeError('sealed parts are no object');
    for (const part of Object.values(parts)) {
      if (!isOf.object(part) || Object.keys(part).sort().join() !== 'salt,value' || typeof part.salt !== 'string') throw new TypeError('a part of what is sealed is a salt and a value');
    }
  }
  if (b.receipts) exact(b.receipts, { key: 'text' }, { agreements: 'object', session: 'text' });
  if (!Object.values(b.receipts?.agreements ?? {}).every(isOf.text)) throw new TypeError('a receipt is no text');
  return b;
}

const isOf: Record<Kind, (value: unknown) => boolean> = {
  text: (v) => typeof v === 'string',
  whole: (v) => Number.isInteger(v) && Number(v) >= 0,
  list: Array.isArray,
  object: (v) => typeof v === 'object' && v !== null && !Array.isArray(v),
};

function exact(value: unknown, members: Record<string, Kind>, optional: Record<string, Kind> = {}): void {
  if (!isOf.object(value)) throw new TypeError('a member is no object');
  const given = value as Members;
  for (const name of Object.keys(members)) if (!Object.hasOwn(given, name)) throw new TypeError(`${name} is missing`);
  for (const [name, v] of Object.entries(given)) {
    const kind = Object.hasOwn(members, name) ? members[name] : Object.hasOwn(optional, name) ? optional[name] : undefined;
    if (!kind) throw new TypeError(`${name} is no member`);
    if (!isOf[kind](v)) throw new TypeError(`${name} is no ${kind}`);
  }
}

const isWithheld = (line: string): boolean => line.startsWith('{"withheld":');
