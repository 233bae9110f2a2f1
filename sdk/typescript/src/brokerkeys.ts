/**
 * The keys that a broker has signed receipts with, for one that has replaced its key (PROTOCOL.md section 3). Each record
 * of a history but the first is signed by the key before and by its own, so whoever trusts one key knows the others.
 * @packageDocumentation
 */

import { canonical } from './json.js';
import { signedBy } from './nkey.js';
import { rawKey } from './sign.js';

/** One key of a broker: `keys` of `broker.info`, `parley keys show broker --json`, `brokerKeys` of a bundle of evidence. */
export interface KeyRecord {
  readonly key: string;
  /** The key before; absent from the first, as all that follows. */
  readonly previous?: string;
  /** When it took the place of the one before. */
  readonly since?: string;
  /** Of the key before. */
  readonly signature?: string;
  /** Of this key, over the same. */
  readonly proof?: string;
}

/** A history of a broker's keys is not genuine, or does not have the trusted key. */
export class BrokerKeysError extends Error {
  override readonly name = 'BrokerKeysError';
}

const maxKeys = 1000;
const skew = 5 * 60 * 1000;
const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/;
const record = ['key', 'previous', 'proof', 'signature', 'since'];

interface Receipt {
  readonly acceptedAt: string;
  readonly state: string;
  readonly broker: string;
  readonly signature: string;
}

/** The keys of one broker whose receipts a verifier accepts, each in its time. @internal */
export class TrustedKeys {
  readonly #terms: ReadonlyMap<string, { since: string; until: string }>;

  private constructor(terms: ReadonlyMap<string, { since: string; until: string }>) {
    this.#terms = terms;
  }

  /** Trusts one key, and with a history all others of it. */
  static async of(broker: string, history?: readonly KeyRecord[]): Promise<TrustedKeys> {
    if (!history) return new TrustedKeys(new Map([[broker, { since: '', until: '' }]]));
    await check(history);
    const terms = new Map(history.map((r, i) => [r.key, { since: r.since ?? '', until: history[i + 1]?.since ?? '' }]));
    if (!terms.has(broker)) throw new BrokerKeysError(`the history of the broker's keys does not have the trusted key, ${broker}`);
    return new TrustedKeys(terms);
  }

  has(key: string): boolean {
    return this.#terms.has(key);
  }

  /** Whether one of the keys signed the receipt of an entry, in its time. */
  async receipted(hash: string, { acceptedAt, state, broker, signature }: Receipt): Promise<boolean> {
    const term = this.#terms.get(broker);
    return term !== undefined && (await signedBy(broker, canonical({ acceptedAt, hash, state }), signature)) && timely(acceptedAt, term);
  }
}

/** What a caller trusts: the key that it names, or else the newest of a history; undefined if it names neither. @internal */
export async function trustedBy(broker?: string, history?: readonly KeyRecord[]): Promise<TrustedKeys | undefined> {
  if (broker) return TrustedKeys.of(broker, history);
  if (!history) return undefined;
  await check(history);
  return TrustedKeys.of(history.at(-1)!.key, history);
}

function timely(at: string, { since, until }: { since: string; until: string }): boolean {
  if (since === '' && until === '') return true;
  if (!isTime(at)) return false;
  return (since === '' || at >= shifted(since, -skew)) && (until === '' || at <= shifted(until, skew));
}

function isTime(at: string): boolean {
  return form.test(at) && !Number.isNaN(Date.parse(at.slice(0, 19) + 'Z'));
}

/** A time some seconds later, in the one form that sorts; its nanoseconds stay. */
function shifted(at: string, by: number): string {
  return new Date(Date.parse(at.slice(0, 19) + 'Z') + by).toISOString().slice(0, 19) + at.slice(19);
}

async function check(history: readonly KeyRecord[]): Promise<void> {
  if (!Array.isArray(history) || history.length < 1 || history.length > maxKeys) {
    throw new BrokerKeysError(`a history of a broker's keys has 1 to ${maxKeys} records`);
  }
  const seen = new Set<string>();
  for (const [i, r] of history.entries()) {
    const why = await wrong(history, i, r, seen);
    if (why) throw new BrokerKeysError(`the history of the broker's keys: record ${i}: ${why}`);
    seen.add(r.key);
  }
}

/** Why a record is not genuine, '' if it is. */
async function wrong(history: readonly KeyRecord[], i: number, r: KeyRecord, seen: Set<string>): Promise<string> {
  const members = typeof r === 'object' && r !== null ? Object.entries(r) : [];
  if (members.map(([name]) => name).sort().join() !== (i > 0 ? record : ['key']).join() || !members.every(([, v]) => typeof v === 'string')) {
    return 'it has more or less than a record has';
  }
  try {
    rawKey(r.key);
  } catch {
    return 'its key is none';
  }
  if (seen.has(r.key)) return 'its key is there twice';
  if (i === 0) return '';
  const { key, previous = '', since = '', signature = '', proof = '' } = r;
  const before = history[i - 1]!;
  if (previous !== before.key) return 'it does not follow the key before it';
  if (!isTime(since)) return 'since is not in UTC with nine digits after the second';
  if (since <= (before.since ?? '')) return 'it is not later than the record before';
  const said = `parley broker key\n${canonical({ key, previous, since })}`;
  if (!(await signedBy(previous, said, signature))) return 'the key before did not sign it';
  if (!(await signedBy(key, said, proof))) return 'its own key did not sign it';
  return '';
}
