/**
 * Verifies an agreement offline: its terms, its hash, who signed it, the entries that made it, its place in the
 * public log. The rules are those of `parley agreement verify` (docs/AGREEMENTS.md).
 * @packageDocumentation
 */

import { trustedBy, TrustedKeys, type KeyRecord } from './brokerkeys.js';
import { canonical, toBase64 } from './json.js';
import { ProofError, verifyInclusion } from './publiclog.js';
import { rawKey } from './sign.js';
import { noDuplicates, readEntry, sha256, signedBy, unsigned, type Entry } from './verify.js';

/** One thing that is wrong with an agreement, and where. */
export interface AgreementFault {
  /** A JSON Pointer. */
  readonly member: string;
  readonly why: string;
}

/** What was verified of an agreement. */
export interface AgreementReport {
  readonly faults: readonly AgreementFault[];
  /**
   * What an agreement without faults proves. `signatures`: every party signed the hash. `entries`: the signed offer
   * and acceptance make this agreement. `digests`: the terms are those of the hash; who agreed to them is not proven.
   */
  readonly proves: 'signatures' | 'entries' | 'digests';
  /** The parties whose signature over the hash is right. */
  readonly signed: readonly string[];
  /** Terms of which only the digest is there. */
  readonly redacted: readonly string[];
  /** It is in the public log, by the log's key. */
  readonly logged: boolean;
}

/** What you trust. What is not given is taken from the document, and proves less. */
export interface Trust {
  /** The public key of the broker whose receipts the entries have. */
  broker?: string;
  /** The history of its keys, where it has replaced one; its newest is trusted without `broker`. One that is not genuine throws a `BrokerKeysError`. */
  brokerKeys?: readonly KeyRecord[];
  /** Of the public log, as `parley log key` prints it. */
  logKey?: string;
  /** Of parties, by URI; `verifyAgreement` demands that each has signed. */
  keys?: Record<string, string>;
  /** Take entries of a broker under `--dev`. */
  allowUnsigned?: boolean;
}

type Members = Record<string, unknown>;

interface Document extends Members {
  agreement_id: string;
  negotiation_id: string;
  parties: string[];
  terms: Members;
  salts: Record<string, string>;
  terms_digests: Record<string, string>;
  agreement_hash: string;
  effective_from: string;
  effective_until?: string;
  signatures?: Record<string, string>;
  evidence?: Evidence;
  log?: { index: number; leaf: { type: string; hash: string; at: string; terms?: Members }; checkpoint: string; proof: string[] };
}

interface Evidence {
  offer?: object;
  commitment?: object;
  acceptance?: object;
  close?: object;
  confirmations?: object[];
  keys?: Record<string, string>;
  rotated?: Record<string, string[]>;
  did_keys?: Record<string, string>;
  dids?: Record<string, string>;
}

const texts = ['agreement_id', 'negotiation_id', 'effective_from', 'agreement_hash'];
const core = ['agreement_id', 'negotiation_id', 'parties', 'category', 'terms_digests', 'effective_from', 'effective_until', 'ccc', 'regulated_obligations'];
const members = [...core, 'terms', 'salts', 'agreement_hash', 'signatures', 'evidence', 'log'];
const proofs = ['offer', 'commitment', 'acceptance', 'close', 'confirmations', 'keys', 'rotated', 'did_keys', 'dids'];

/** Check an agreement, as JSON or as `agreement.get` answers it. */
export async function verifyAgreement(document: string | object, trust: Trust = {}): Promise<AgreementReport> {
  return verifyTrusting(document, trust, await trustedBy(trust.broker, trust.brokerKeys), true);
}

/** `verifyAgreement` by keys that are checked; unless they are demanded, what they have not signed may hold. @internal */
export async function verifyTrusting(document: string | object, trust: Trust, by?: TrustedKeys, demand = false): Promise<AgreementReport> {
  const check = new Check(trust, by);
  try {
    const text = typeof document === 'string' ? document : canonical(document);
    noDuplicates(text);
    await check.all(shaped(JSON.parse(text)));
    if (demand) check.demand();
  } catch (error) {
    check.fault('', `is no agreement: ${(error as Error).message}`);
  }
  return check.report();
}

type Steps = Partial<Record<'commitment' | 'close', Entry>> & { offer: Entry; acceptance: Entry };

class Check {
  readonly #faults: AgreementFault[] = [];
  readonly #redacted: string[] = [];
  readonly #signers = new Map<string, Set<string>>(); // the keys that signed for each, entries first
  #signed: string[] = [];
  #logged = false;
  #entries = false;
  #d!: Document;
  #said: Evidence = {};
  #parties: string[] = [];

  constructor(readonly trust: Trust, readonly by?: TrustedKeys) {}

  fault(member: string, why: string): void {
    this.#faults.push({ member, why });
  }

  report(): AgreementReport {
    const proves = this.#signed.length > 0 ? 'signatures' : this.#entries ? 'entries' : 'digests';
    return { faults: this.#faults, proves, signed: this.#signed, redacted: this.#redacted, logged: this.#logged };
  }

  async all(d: Document): Promise<void> {
    this.#d = d;
    this.#said = d.evidence ?? {};
    this.#parties = d.parties.map((did, i) => this.#party(did, i));
    await this.#hashes();
    this.#dates();
    await this.#evidence();
    await this.#signatures();
    await this.#log();
  }

  #party(did: string, i: number): string {
    const registered = Object.entries(this.#said.dids ?? {}).find(([, other]) => other === did);
    if (registered) return registered[0];
    if (!did.startsWith('did:web:')) {
      this.fault(`/parties/${i}`, 'is no DID of a principal');
      return '';
    }
    const path = did.slice('did:web:'.length).replaceAll(':', '/');
    return path.includes('/%40') ? `human://${path.replace('/%40', '/')}` : `agent://${path}`;
  }

  async #hashes(): Promise<void> {
    const { terms, salts, terms_digests: digests } = this.#d;
    for (const name of Object.keys(digests).sort()) {
      if (!Object.hasOwn(terms, name)) this.#redacted.push(name);
      else if ((await digest([salts[name] ?? '', name, terms[name]])) !== digests[name]) {
        this.fault(`/terms/${name}`, 'the term and its salt do not have the digest of terms_digests');
      }
    }
    for (const name of Object.keys(terms)) if (!Object.hasOwn(digests, name)) this.fault(`/terms/${name}`, 'terms_digests has no such term');
    for (const name of Object.keys(salts)) if (!Object.hasOwn(terms, name)) this.fault(`/salts/${name}`, 'terms has no such term');
    if ((await digest(Object.fromEntries(core.map((name) => [name, this.#d[name]])))) !== this.#d.agreement_hash) {
      this.fault('/agreement_hash', 'is not the hash of the agreement');
    }
    if (this.#d.parties.length < 2) this.fault('/parties', 'an agreement has two parties or more');
  }

  #dates(): void {
    const begins = timeOf(this.#d.effective_from);
    if (begins === undefined) this.fault('/effective_from', 'is no date and time');
    if (this.#d.effective_until === undefined) return;
    const ends = timeOf(this.#d.effective_until);
    if (begins === undefined || ends === undefined || ends <= begins) this.fault('/effective_until', 'is not after effective_from');
  }

  async #evidence(): Promise<void> {
    const said = this.#said;
    if (!said.offer && !said.acceptance) return;
    this.#entries = true;
    const before = this.#faults.length;
    const entry = async (member: string, e: unknown): Promise<Entry | undefined> => this.#entry(`/evidence/${member}`, e);
    const [offer, acceptance] = [await entry('offer', said.offer), await entry('acceptance', said.acceptance)];
    const commitment = said.commitment && (await entry('commitment', said.commitment));
    const close = said.close && (await entry('close', said.close));
    const rulings: Entry[] = [];
    for (const [i, e] of (said.confirmations ?? []).entries()) {
      const read = await entry(`confirmations/${i}`, e);
      if (read) rulings.push(read);
    }
    const complete = rulings.length === (said.confirmations ?? []).length && (!said.commitment || commitment) && (!said.close || close);
    if (!offer || !acceptance || !complete) {
      if (this.#faults.length === before) this.fault('/evidence', 'lacks an entry');
      return;
    }
    for (const [agent, keys] of Object.entries(said.rotated ?? {})) {
      if (!keys.every((key) => this.#signers.get(agent)?.has(key))) this.fault(`/evidence/rotated/${agent}`, 'a key signed no entry');
    }
    const steps: Steps = { offer, acceptance, ...(commitment && { commitment }), ...(close && { close }) };
    this.#follows(steps);
    this.#confirmed(steps, rulings);
    await this.#made(steps, rulings);
    this.#agreedBy(steps);
  }

  /** Checks one entry as far as it stands alone. */
  async #entry(member: string, data: unknown): Promise<Entry | undefined> {
    let e: Entry;
    try {
      e = await readEntry(new TextEncoder().encode(canonical(data)));
    } catch (error) {
      this.fault(member, (error as Error).message);
      return undefined;
    }
    if (e.recomputed !== e.hash) this.fault(member, 'its hash is not that of its bytes');
    const receipts = this.by ?? (await TrustedKeys.of(e.receipt.broker));
    if (!(await receipts.receipted(e.hash, e.receipt))) this.fault(member, 'its receipt is not signed by the broker');
    if (e.signature === '' && this.trust.allowUnsigned) return e;
    const first = this.#said.keys?.[e.sender] ?? '';
    const keys = [first, ...(this.#said.rotated?.[e.sender] ?? [])];
    let by: string | undefined;
    for (const key of keys) if (!by && key && (await signedBy(key, canonical(unsigned(e.sent)), e.signature))) by = key;
    const trusted = this.trust.keys?.[e.sender];
    const apart = this.#said.did_keys?.[e.sender] !== undefined; // then the trusted key signed the hash
    if (!first) this.fault(member, `the key of ${e.sender} is not known`);
    else if (!by) this.fault(member, `${e.sender} did not sign it with the key ${first}`);
    else if (trusted !== undefined && !apart && !keys.includes(trusted)) this.fault(member, `${e.sender} did not sign it with the key ${trusted}`);
    else this.#signedWith(e.sender, by);
    return e;
  }

  /** Each entry is about the one before, and comes after it. */
  #follows(steps: Steps): void {
    const wanted = { commitment: ['COMMIT'], acceptance: ['ACCEPT', 'COMMIT'], close: ['CLOSE'] };
    let before = steps.offer;
    for (const name of ['commitment', 'acceptance', 'close'] as const) {
      const e = steps[name];
      if (!e) continue;
      const body = bodyOf(e);
      if (!wanted[name].includes(actOf(e))) this.fault(`/evidence/${name}`, `is a ${actOf(e)}`);
      if (name !== 'close') {
        if (body['referenceId'] !== idOf(before)) this.fault(`/evidence/${name}`, 'is about another offer');
      } else if ((body['outcome'] ?? 'completed') !== 'completed' || steps.commitment) {
        this.fault('/evidence/close', 'is no CLOSE with the outcome completed');
      }
      if (e.session !== before.session || e.sequence <= before.sequence) this.fault(`/evidence/${name}`, 'does not follow the offer');
      before = e;
    }
  }

  /** People of each party's organisation have confirmed what was accepted, if anybody has. */
  #confirmed({ offer, acceptance }: Steps, rulings: Entry[]): void {
    const missing = new Set(rulings.length > 0 ? this.#parties.map(organisation) : []);
    let before = acceptance;
    for (const [i, e] of rulings.entries()) {
      const ruling = bodyOf(e)['data'] as { decision?: string; escalationId?: string } | undefined;
      if (actOf(e) !== 'INFORM' || ruling?.decision !== 'approved' || ![offer.id, acceptance.id].includes(ruling.escalationId ?? '')) {
        this.fault(`/evidence/confirmations/${i}`, 'confirms nothing of this agreement');
      } else if (e.session !== before.session || e.sequence !== before.sequence + 1) {
        this.fault(`/evidence/confirmations/${i}`, 'does not follow the acceptance');
      }
      missing.delete(organisation(e.sender));
      before = e;
    }
    for (const name of [...missing].sort()) this.fault('/evidence/confirmations', `nobody of ${name} has confirmed it`);
  }

  /** The entries make exactly this agreement. */
  async #made({ offer, acceptance, commitment, close }: Steps, rulings: Entry[]): Promise<void> {
    const d = this.#d;
    const body = bodyOf(offer);
    let terms = body['terms'] as Members | undefined;
    let name = idOf(offer);
    if (commitment || actOf(offer) === 'COMMIT') {
      const said = bodyOf(commitment ?? offer);
      const { deadline, escrow } = said;
      terms = { ...(commitment && terms), ...(said['terms'] as Members | undefined), ...(deadline !== undefined && { deadline }), ...(escrow !== undefined && { escrow }) };
      if (commitment && d.agreement_id === (await agreementId(offer.session, idOf(commitment)))) name = idOf(commitment);
    }
    if (typeof terms !== 'object' || terms === null) return this.fault('/evidence/offer', 'the entry makes no offer');
    const accepted = close ?? rulings.at(-1) ?? acceptance;
    const made = await hashOfAgreement({
      session: offer.session, offer: name, parties: d.parties, salt: await saltOf(offer),
      body: { ...body, terms, effectiveFrom: body['effectiveFrom'] || accepted.receipt.acceptedAt },
      inherited: { ccc: d['ccc'], regulated_obligations: d['regulated_obligations'] }, oap: d.negotiation_id.startsWith('neg_'),
    });
    if (made !== d.agreement_hash) this.fault('/agreement_hash', 'the entries of offer and acceptance make another agreement');
    if (Object.keys(d.terms).length < Object.keys(d.terms_digests).length) this.fault('/evidence/offer', 'tells the terms that were taken out');
    const given = [offer, acceptance].map((e) => (bodyOf(e)['agreementSignature'] as string | undefined) ?? '');
    const told = d.parties.map((did) => d.signatures?.[did] ?? '');
    const differ = given.some((g, i) => g && told[i] && g !== told[i]);
    if (differ || (told.every((t) => !t) && (await this.#allSigned(given)))) this.fault('/signatures', 'are not those of the entries');
  }

  async #allSigned(given: string[]): Promise<boolean> {
    const keys = this.#parties.map((party) => this.#said.did_keys?.[party] ?? this.#said.keys?.[party] ?? '');
    if (keys.length !== 2) return false;
    for (const [i, key] of keys.entries()) if (!(await signedHash(key, this.#d.agreement_hash, given[i]!))) return false;
    return true;
  }

  /** The parties are those who made the offer, accepted it, and committed to it. */
  #agreedBy({ offer, acceptance, commitment }: Steps): void {
    const accepter = sideOf(acceptance);
    let made = sideOf(offer);
    let right = made === this.#parties[0];
    if (commitment) {
      made = sideOf(commitment);
      right &&= this.#parties.includes(made);
    }
    const converged = actOf(acceptance) === 'COMMIT'; // anybody may who is allowed to
    if (!right || (!converged && (accepter === made || !this.#parties.includes(accepter)))) {
      this.fault('/parties', 'are not those who made and accepted the offer');
    }
  }

  async #signatures(): Promise<void> {
    const { signatures = {}, parties, agreement_hash: hash } = this.#d;
    const { did_keys: ofHash = {}, keys = {} } = this.#said;
    if (Object.keys(signatures).length === 0) {
      if (Object.keys(ofHash).length > 0) this.fault('/evidence/did_keys', 'are keys of signatures that are not here');
      return;
    }
    const before = this.#faults.length;
    for (const [i, did] of parties.entries()) {
      const signature = signatures[did];
      if (signature === undefined) {
        this.fault('/signatures', `${did} has not signed`);
        continue;
      }
      const party = this.#parties[i]!;
      const trusted = this.trust.keys?.[party];
      const named = ofHash[party] ?? keys[party];
      const signers = this.#d.evidence ? [named ?? '', ...(trusted !== undefined ? [trusted] : [])] : [trusted ?? ''];
      for (const key of new Set(signers)) {
        if (await signedHash(key, hash, signature)) this.#signedWith(party, key);
        else this.fault(`/signatures/${did}`, `is not of the key of ${party}`);
      }
    }
    if (Object.keys(signatures).length > parties.length) this.fault('/signatures', 'somebody signed who is no party');
    if (this.#faults.length === before) this.#signed = [...parties];
  }

  #signedWith(agent: string, key: string): void {
    this.#signers.set(agent, (this.#signers.get(agent) ?? new Set()).add(key));
  }

  /** Each trusted key has signed, or else the broker's has. That a party replaced its key is the broker's word. */
  demand(): void {
    const trusted = Object.entries(this.trust.keys ?? {}).sort();
    for (const [party, key] of trusted) {
      const signers = this.#signers.get(party) ?? new Set();
      if (!signers.has(key)) this.fault('/signatures', `${party} has not signed with the key ${key}`);
      else if (signers.size > 1 && !this.by && !this.#logged && this.#said.did_keys?.[party] === undefined) {
        this.fault(`/evidence/rotated/${party}`, 'another key has signed, too, and only the broker\'s key can show that it may');
      }
    }
    if (this.by && trusted.length === 0 && !this.#entries && !this.#logged) {
      this.fault('/evidence', 'has no entries with receipts, so the broker\'s key proves nothing');
    }
  }

  /** Its leaf is of this agreement, and, by the log's key, in the log. */
  async #log(): Promise<void> {
    const { log, agreement_hash: hash, terms } = this.#d;
    if (!log) {
      if (this.trust.logKey) this.fault('/log', 'the agreement has no position in the log');
      return;
    }
    const { leaf } = log;
    if (leaf.type !== 'agreement' || leaf.hash !== hash) this.fault('/log/leaf', 'is of something else');
    const { close, acceptance, confirmations = [] } = this.#said;
    const made = (close ?? confirmations.at(-1) ?? acceptance) as { integrity: { receipt: { acceptedAt: string } } } | undefined;
    if (made && made.integrity.receipt.acceptedAt !== leaf.at) this.fault('/log/leaf', 'the agreement was made at another time');
    for (const [name, value] of Object.entries(leaf.terms ?? {})) {
      if (Object.hasOwn(terms, name) && canonical(terms[name]) !== canonical(value)) this.fault('/log/leaf', `the term ${name} is another`);
    }
    if (!this.trust.logKey) return;
    try {
      await verifyInclusion(leaf, log.index, log.proof, log.checkpoint, this.trust.logKey);
      this.#logged = true;
    } catch (error) {
      if (!(error instanceof ProofError)) throw error;
      this.fault('/log', error.message);
    }
  }
}

/** The document, if its members are those of an agreement. */
function shaped(read: unknown): Document {
  const d = object(read);
  const evidence = object(d['evidence'] ?? {}) as Evidence & Members;
  if (!Object.keys(d).every((name) => members.includes(name)) || !Object.keys(evidence).every((name) => proofs.includes(name))) {
    throw new TypeError('it has more than an agreement has');
  }
  if (Object.values(d).includes(null)) throw new TypeError('a member is null');
  const parties = d['parties'];
  if (!Array.isArray(parties)) throw new TypeError('parties is no list');
  const said: unknown[] = [...texts.map((name) => d[name]), ...(parties as unknown[]), d['category'] ?? '', d['effective_until'] ?? ''];
  object(d['terms']);
  for (const name of ['salts', 'terms_digests']) said.push(...Object.values(object(d[name])));
  said.push(...Object.values(object(d['signatures'] ?? {})));
  if (!said.every((text) => typeof text === 'string')) throw new TypeError('a member is no text');
  for (const key of [...Object.values(evidence.keys ?? {}), ...Object.values(evidence.did_keys ?? {}), ...Object.values(evidence.rotated ?? {}).flat()]) rawKey(key);
  return d as Document;
}

function object(value: unknown): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('a member is no object');
  return value as Members;
}

/** @internal */
export const bodyOf = (e: Entry): Members => (e.sent['content'] as { body: Members }).body;
/** @internal */
export const actOf = (e: Entry): string => String(e.sent['performative']);
/** @internal */
export const sideOf = (e: Entry): string => e.onBehalfOf || e.sender;
const organisation = (agent: string): string => agent.split('://')[1]?.split('/')[0] ?? '';

/** What an agreement is made of. @internal */
export interface Draft {
  session: string;
  /** The offer's id. */
  offer: string;
  /** What it says. */
  body: Members;
  /** DIDs, the one of who made the offer first. */
  parties: readonly string[];
  salt: Uint8Array<ArrayBuffer>;
  /** Of the parties, where they have them. */
  inherited: { ccc?: unknown; regulated_obligations?: unknown };
  /** It has OAP's ids. */
  oap: boolean;
}

/** The hash of the agreement that an offer becomes, which parties sign in binding/1. @internal */
export async function hashOfAgreement(draft: Draft): Promise<string> {
  return digest(await coreOf(draft));
}

/** What the hash of the agreement covers that an offer becomes. @internal */
export async function coreOf({ session, offer, body, parties, salt, inherited, oap }: Draft): Promise<Members> {
  const digests: Record<string, string> = {};
  for (const [term, value] of Object.entries(body['terms'] as Members)) digests[term] = await digest([await saltedBy(salt, term), term, value]);
  return {
    agreement_id: await agreementId(session, offer), negotiation_id: (oap ? 'neg_' : '') + session, parties, terms_digests: digests,
    category: body['category'] || undefined, effective_from: body['effectiveFrom'] || undefined, effective_until: body['effectiveUntil'] || undefined,
    ...inherited,
  };
}

/** The DID of a principal that has registered no other. @internal */
export function didOf(uri: string): string {
  const name = uri.split('://')[1] ?? '';
  return `did:web:${(uri.startsWith('human://') ? name.replace('/', '/%40') : name).replaceAll('/', ':')}`;
}

/** The salt that an offer has. @internal */
export function saltIn(body: Members): Uint8Array<ArrayBuffer> | undefined {
  const given = body['agreementSalt'];
  return typeof given === 'string' && /^[A-Za-z0-9_-]{43}$/.test(given) ? fromBase64(given) : undefined;
}

/** What others refer to an entry by. @internal */
export function idOf(e: Entry): string {
  const named: Record<string, string> = { PROPOSE: 'proposalId', COUNTER: 'proposalId', COMMIT: 'commitmentId' };
  return (bodyOf(e)[named[actOf(e)] ?? ''] as string | undefined) ?? e.id;
}

async function agreementId(session: string, proposal: string): Promise<string> {
  const sum = await hashOf(new TextEncoder().encode(`${session}:${proposal}`));
  const bits = Array.from(sum, (b) => b.toString(2).padStart(8, '0')).join('').slice(0, 26 * 5);
  return `agr_${bits.match(/.{5}/g)!.map((five) => '0123456789ABCDEFGHJKMNPQRSTVWXYZ'[parseInt(five, 2)]).join('')}`;
}

/** The salt that the offer has, or one that derives from what only the participants know. @internal */
export async function saltOf(offer: Entry): Promise<Uint8Array<ArrayBuffer>> {
  const given = saltIn(bodyOf(offer));
  if (given) return given;
  return hashOf(new TextEncoder().encode(`parley agreement salt\n${offer.signature}${canonical(unsigned(offer.sent))}`));
}

/** @internal */
export async function saltedBy(salt: Uint8Array<ArrayBuffer>, term: string): Promise<string> {
  const key = await crypto.subtle.importKey('raw', salt, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return toBase64(new Uint8Array(await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(term))));
}

/** Its SHA-256. @internal */
export async function hashOf(data: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', data));
}

/** @internal */
export async function digest(value: unknown): Promise<string> {
  return (await sha256(canonical(value))).replace(':', '-');
}

/** @internal */
export async function signedHash(key: string, hash: string, signature: string): Promise<boolean> {
  if (!/^[A-Za-z0-9_-]{86}$/.test(signature)) return false;
  const raw = fromBase64(signature);
  const hex = Array.from(raw, (b) => b.toString(16).padStart(2, '0')).join('');
  return toBase64(raw) === signature && signedBy(key, hash, `ed25519:${hex}`);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
}

/** @internal */
export function timeOf(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(text)) return undefined;
  const at = Date.parse(text.toUpperCase().replace(/(\.\d{3})\d+/, '$1'));
  return Number.isNaN(at) ? undefined : at;
}
