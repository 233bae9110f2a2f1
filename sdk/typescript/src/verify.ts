/**
 * Verifies that the record of a session is complete and genuine, with the broker's public key alone
 * (PROTOCOL.md section 12). The rules and their order are those of `parley session verify`.
 * @packageDocumentation
 */

import { TrustedKeys, type KeyRecord } from './brokerkeys.js';
import { canonical, toHex } from './json.js';
import { signedBy } from './nkey.js';

export { BrokerKeysError, type KeyRecord } from './brokerkeys.js';
export { signedBy };

/** The rules, in the order in which an entry is checked; then those of the whole. */
export type Rule =
  | 'json' | 'canonical' | 'session' | 'hash' | 'receipt' | 'erased' | 'sequence' | 'previous' | 'time' | 'duplicate' | 'broker' | 'pinned' | 'signature'
  | 'length' | 'head';

/** A rule that an entry, or the whole, breaks. */
export interface Fault {
  /** Of the export, from 1; 0 of the whole. */
  readonly line: number;
  /** As the entry states it, or its position if it cannot be read. */
  readonly sequence: number;
  readonly rule: Rule;
  readonly why: string;
}

/** What the caller knows of a transcript from elsewhere. */
export interface Expect {
  session?: string;
  /** Hash of the last entry, for example from the acceptance of a CLOSE. */
  head?: string;
  /** Number of entries. */
  length?: number;
  /** Take unsigned entries of members that have a key, as a broker under `--dev` does. */
  allowUnsigned?: boolean;
  /** The history of the broker's keys, where it has replaced one. One that is not genuine throws a `BrokerKeysError`. */
  brokerKeys?: readonly KeyRecord[];
}

/** @internal */
export const noHash = `sha256:${'0'.repeat(64)}`;
const brokersFields = ['hash', 'receipt', 'linkedBy', 'onBehalfOf', 'joined'];
const maxLine = 4 * (256 << 10);
const erasedStart = '{"erased":';

/** Verify an exported transcript: JSON Lines, one delivered envelope each. No faults: it is genuine. */
export async function verifyTranscript(file: Uint8Array | string, brokerKey: string, expect: Expect = {}): Promise<Fault[]> {
  const bytes = typeof file === 'string' ? new TextEncoder().encode(file) : file;
  const verifier = new Verifier(brokerKey, await TrustedKeys.of(brokerKey, expect.brokerKeys), expect);
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(0x0a, from);
    await verifier.add(bytes.subarray(from, end < 0 ? bytes.length : end));
    from = end < 0 ? bytes.length : end + 1;
  }
  return verifier.end();
}

/** Whether an exported transcript is what is left of a session that was erased: what was said, by whom, and in which session can no longer be verified. */
export function isErased(file: Uint8Array | string): boolean {
  const start = typeof file === 'string' ? file.slice(0, erasedStart.length) : new TextDecoder().decode(file.subarray(0, erasedStart.length));
  return start === erasedStart;
}

type Members = Record<string, unknown>;

/** An entry as it was delivered. @internal */
export interface Entry {
  sent: Members; // as the sender made it
  id: string;
  session: string;
  sender: string;
  sequence: number;
  previous: string;
  hash: string;
  recomputed: string;
  joined: { agentId: string; key?: string }[];
  receipt: { acceptedAt: string; state: string; broker: string; signature: string };
  signature: string;
  onBehalfOf: string;
}

/** Checks a transcript entry by entry. @internal */
export class Verifier {
  readonly #broker: string;
  readonly #keys: TrustedKeys;
  readonly #expect: Expect;
  readonly #seen = new Map<string, number>();
  readonly #pins = new Map<string, { key: string; doubtful: boolean }>();
  readonly #faults: Fault[] = [];
  #lines = 0;
  #session: string | undefined;
  #next = { sequence: 0, previous: noHash }; // after the last genuine entry
  #doubtful = 0; // lines since then, which are not genuine and may or may not have a position
  #accepted = '';
  #lost = false; // an entry is missing or not genuine, so its pins are unknown
  #erased: boolean | undefined; // whether the first line is, once there is one

  constructor(brokerKey: string, keys: TrustedKeys, expect: Expect = {}) {
    this.#broker = brokerKey;
    this.#keys = keys;
    this.#expect = expect;
    this.#session = expect.session;
  }

  /** Checks the next entry, without its line feed, and returns it if it can be read. */
  async add(line: Uint8Array): Promise<Entry | undefined> {
    this.#lines++;
    const here = this.#next.sequence + this.#doubtful;
    let e: Entry;
    try {
      if (isErased(line)) return void (await this.#addErased(readErased(line)));
      e = await readEntry(line);
    } catch (error) {
      this.#fault(here, error instanceof Unreadable ? error.rule : 'json', (error as Error).message);
      this.#doubtful++;
      this.#lost = true;
      return undefined;
    }
    const text = new TextDecoder().decode(line);
    if (!isCanonical(text)) this.#fault(e.sequence, 'canonical', 'the line is not the canonical form (RFC 8785) of its JSON');
    const genuine = await this.#isGenuine(e);
    this.#sameKind(e.sequence, false);
    const inPlace = this.#position(e, genuine);
    this.#times(e, inPlace);
    this.#once(e, genuine);
    await this.#sender(e, genuine, inPlace);
    return e;
  }

  /** The faults of the transcript as a whole, after those of its entries. */
  end(): Fault[] {
    const { length, head } = this.#expect;
    const whole = (rule: Rule, why: string): void => void this.#faults.push({ line: this.#lines, sequence: this.#next.sequence, rule, why });
    if (this.#lines === 0) whole('length', 'there is no entry');
    else if (length && this.#lines !== length) whole('length', `there are ${this.#lines} entries; ${length} are expected`);
    else if (head && this.#next.previous !== head && this.#doubtful === 0) whole('head', `the transcript ends with ${this.#next.previous}; ${head} is expected`);
    return this.#faults;
  }

  #fault(sequence: number, rule: Rule, why: string): void {
    this.#faults.push({ line: this.#lines, sequence, rule, why });
  }

  /** Whether the broker accepted exactly this entry in this session. Then its sequence number is true. */
  async #isGenuine(e: Entry): Promise<boolean> {
    const unchanged = e.recomputed === e.hash;
    const receipted = await this.#keys.receipted(e.hash, e.receipt);
    if (!this.#session && unchanged && receipted) this.#session = e.session;
    const other = this.#isOther(e);
    if (other) this.#fault(e.sequence, 'session', `the entry is of session ${e.session}; the transcript, of ${this.#session}`);
    if (!unchanged) this.#fault(e.sequence, 'hash', `the entry was changed: its hash is ${e.recomputed}, not ${e.hash} as it says`);
    this.#receipt(e, receipted);
    return unchanged && receipted && !other;
  }

  #receipt(e: Entry, receipted: boolean): void {
    if (!this.#keys.has(e.receipt.broker)) this.#fault(e.sequence, 'receipt', `the receipt is not by the broker ${this.#broker}`);
    else if (!receipted) this.#fault(e.sequence, 'receipt', 'the broker did not sign that it accepted this hash at this time into this state');
  }

  async #addErased(e: Entry): Promise<void> {
    const receipted = await this.#keys.receipted(e.hash, e.receipt);
    this.#receipt(e, receipted);
    this.#lost = true; // nobody knows who joined
    this.#sameKind(e.sequence, true);
    this.#times(e, this.#position(e, receipted));
  }

  #sameKind(sequence: number, erased: boolean): void {
    this.#erased ??= erased;
    if (this.#erased !== erased) this.#fault(sequence, 'erased', `a transcript is erased whole or not at all; this line is ${erased ? 'erased' : 'not'}`);
  }

  #isOther(e: Entry): boolean {
    return this.#session !== undefined && this.#session !== '' && e.session !== this.#session;
  }

  /** Follows genuine entries, whose sequence numbers are true, so one that is not means one fault. */
  #position(e: Entry, genuine: boolean): boolean {
    const at = e.sequence;
    const first = this.#next.sequence;
    const here = first + this.#doubtful;
    const inPlace = genuine && at >= first;
    if (!genuine && at !== here) this.#fault(at, 'sequence', `its sequenceNumber is ${at}; entry ${here} belongs here`);
    else if (at > here) {
      this.#fault(at, 'sequence', `entries ${here} to ${at - 1} are missing before it`);
      this.#lost = true;
    } else if (genuine && at < first) this.#fault(at, 'sequence', `entry ${at} is repeated or out of order; entry ${here} belongs here`);
    else if (at === first && (genuine || this.#doubtful === 0) && e.previous !== this.#next.previous) {
      this.#fault(at, 'previous', `it does not link to the previous entry, whose hash is ${this.#next.previous}`);
    }
    if (inPlace) {
      this.#next = { sequence: at + 1, previous: e.hash };
      this.#doubtful = 0;
    } else if (!genuine) {
      this.#doubtful++;
      this.#lost = true;
    }
    return inPlace;
  }

  #times(e: Entry, inPlace: boolean): void {
    const at = e.receipt.acceptedAt; // in the one form that sorts
    if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/.test(at) || Number.isNaN(Date.parse(at.slice(0, 19) + 'Z'))) {
      this.#fault(e.sequence, 'time', `acceptedAt is ${JSON.stringify(at)}; want UTC with nine digits after the second`);
    } else if (at < this.#accepted) this.#fault(e.sequence, 'time', `it was accepted at ${at}, earlier than the previous entry`);
    else if (inPlace) this.#accepted = at;
  }

  #once(e: Entry, genuine: boolean): void {
    const before = this.#seen.get(e.id);
    if (before !== undefined) this.#fault(e.sequence, 'duplicate', `message ${e.id} is already in entry ${before}`);
    else if (genuine) this.#seen.set(e.id, e.sequence);
  }

  /** Verifies the sender's signature with the key that was last pinned for it, in this entry or an earlier one. */
  async #sender(e: Entry, genuine: boolean, inPlace: boolean): Promise<void> {
    if (!this.#isOther(e)) {
      for (const m of e.joined) { // one out of order does not replace a newer key
        if (!(this.#pins.has(m.agentId) && genuine && !inPlace)) this.#pins.set(m.agentId, { key: m.key ?? '', doubtful: !genuine });
      }
    }
    const text = canonical(unsigned(e.sent));
    if (e.sender.startsWith('broker://')) {
      const key = e.sender.slice('broker://'.length);
      const known = this.#keys.has(key) && (!genuine || key === e.receipt.broker);
      if (!known) this.#fault(e.sequence, 'broker', `${e.sender} is not the broker that kept this transcript`);
      else if (!(await signedBy(key, text, e.signature))) this.#fault(e.sequence, 'signature', 'the broker did not sign its own entry');
      return;
    }
    const pin = this.#pins.get(e.sender);
    if (!pin) {
      if (!this.#lost) this.#fault(e.sequence, 'pinned', `${e.sender} has not joined the session`);
    } else if (pin.key === '' || (e.signature === '' && this.#expect.allowUnsigned) || (pin.doubtful && genuine)) {
      return; // it joined without a key, under --dev; or its pin is already a fault
    } else if (!(await signedBy(pin.key, text, e.signature))) {
      this.#fault(e.sequence, 'signature', `${e.sender} did not sign this with the key that it joined with, ${pin.key}`);
    }
  }
}

/** What opens sealed members of an act: `{member: {salt, value}}`. */
export type SealedParts = Record<string, { salt: string; value: unknown }>;

/** The body of an act with its sealed members in the clear; throws if a part is not what was sealed. */
export async function openSealed(body: Record<string, unknown>, parts: SealedParts): Promise<Record<string, unknown>> {
  const data = body['data'];
  const ruling = typeof data === 'object' && data !== null && 'sealed' in data;
  const { sealed, ...opened } = (ruling ? data : body) as Members;
  const digests = { ...(sealed as Record<string, string> | undefined) };
  for (const [member, { salt, value }] of Object.entries(parts)) {
    if (digests[member] !== (await sha256(canonical([salt, member, value])))) throw new RangeError(`the part ${member} is not what was sealed`);
    delete digests[member];
    opened[member] = value;
  }
  if (Object.keys(digests).length > 0) opened['sealed'] = digests;
  return ruling ? { ...body, data: opened } : opened;
}

class Unreadable extends Error {
  constructor(readonly rule: Rule, why: string) {
    super(why);
  }
}

/** Reads one delivered envelope. @internal */
export async function readEntry(line: Uint8Array): Promise<Entry> {
  if (line.length > maxLine) throw new Unreadable('json', 'the line is too large');
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(line);
  noDuplicates(text);
  const e = object(JSON.parse(text) as unknown, 'the envelope');
  const integrity = object(e['integrity'], 'integrity');
  const receipt = integrity['receipt'] as Members;
  const names = ['acceptedAt', 'broker', 'signature', 'state'];
  if (typeof receipt !== 'object' || receipt === null || Object.keys(receipt).sort().join() !== names.join() || !names.every((n) => typeof receipt[n] === 'string')) {
    throw new Unreadable('receipt', 'a receipt has acceptedAt, broker, signature and state, and nothing else');
  }
  const { linkedBy } = integrity;
  if (linkedBy !== 'sender' && linkedBy !== 'broker') throw new Unreadable('json', 'integrity.linkedBy is sender or broker');
  const { integrity: _, ...envelope } = e;
  const { hash: stated, receipt: __, ...hashed } = integrity;
  const sent: Members = { ...envelope };
  const own = Object.fromEntries(Object.entries(integrity).filter(([name]) => !brokersFields.includes(name)));
  if (linkedBy === 'broker') {
    delete sent['sequenceNumber'];
    delete own['previousHash'];
  }
  sent['integrity'] = own;
  const body = object(object(e['content'], 'content')['body'], 'content.body');
  const sequence = e['sequenceNumber'];
  if (typeof sequence !== 'number' || !Number.isInteger(sequence) || sequence < 0) throw new Unreadable('json', 'sequenceNumber is a whole number from 0');
  const joined = integrity['joined'] ?? [];
  if (!Array.isArray(joined) || !body) throw new Unreadable('json', 'integrity.joined is a list');
  return {
    sent, sequence,
    id: string(e['messageId'], 'messageId'), session: string(e['sessionId'], 'sessionId'),
    sender: string(object(e['sender'], 'sender')['agentId'], 'sender.agentId'),
    previous: string(integrity['previousHash'], 'integrity.previousHash'), hash: string(stated, 'integrity.hash'),
    recomputed: await sha256(canonical({ ...envelope, integrity: hashed })),
    joined: joined as Entry['joined'], receipt: receipt as unknown as Entry['receipt'],
    signature: typeof own['signature'] === 'string' ? own['signature'] : '',
    onBehalfOf: typeof integrity['onBehalfOf'] === 'string' ? integrity['onBehalfOf'] : '',
  };
}

/** What is left of an entry whose session was erased: its hash, link, position and receipt, and nothing else. */
function readErased(line: Uint8Array): Entry {
  if (line.length > maxLine) throw new Unreadable('json', 'the line is too large');
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(line);
  const e = object((JSON.parse(text) as Members)['erased'], 'erased');
  const stated = object(e['receipt'], 'receipt');
  const [acceptedAt, broker, signature, state] = ['acceptedAt', 'broker', 'signature', 'state'].map((name) => string(stated[name], name)) as [string, string, string, string];
  const left = { hash: string(e['hash'], 'hash'), previousHash: string(e['previousHash'], 'previousHash'), receipt: { acceptedAt, broker, signature, state }, sequence: e['sequence'] };
  const { sequence } = left;
  if (typeof sequence !== 'number' || !Number.isSafeInteger(sequence) || sequence < 0 || canonical({ erased: left }) !== text) {
    throw new Unreadable('json', 'the line is not what is left of an erased entry');
  }
  return {
    sent: {}, sequence, id: '', session: '', sender: '', previous: left.previousHash, hash: left.hash, recomputed: left.hash,
    joined: [], receipt: left.receipt, signature: '', onBehalfOf: '',
  };
}

function object(value: unknown, what: string): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Unreadable('json', `${what} is no object`);
  return value as Members;
}

function string(value: unknown, what: string): string {
  if (typeof value !== 'string' || value === '') throw new Unreadable('json', `${what} is missing`);
  return value;
}

/** Refuses an object that has a member twice, which JSON.parse does not. @internal */
export function noDuplicates(text: string): void {
  const scopes: (Set<string> | undefined)[] = [];
  const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g;
  for (let token; (token = tokens.exec(text)); ) {
    const [found, colon] = token;
    if (found === '{') scopes.push(new Set());
    else if (found === '[') scopes.push(undefined);
    else if (found === '}' || found === ']') scopes.pop();
    else if (colon !== undefined) {
      const name = JSON.parse(found.slice(0, found.length - colon.length)) as string;
      if (scopes.at(-1)?.has(name)) throw new Unreadable('json', `the member ${name} is there twice`);
      scopes.at(-1)?.add(name);
    }
  }
}

function isCanonical(text: string): boolean {
  try {
    return canonical(JSON.parse(text)) === text;
  } catch {
    return false;
  }
}

/** @internal */
export function unsigned(sent: Members): Members {
  const { signature: _, ...integrity } = sent['integrity'] as Members;
  return { ...sent, integrity };
}

/** The SHA-256 of a text, as parley writes it. @internal */
export async function sha256(text: string): Promise<string> {
  return `sha256:${toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))))}`;
}
