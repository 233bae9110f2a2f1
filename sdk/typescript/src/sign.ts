/** Envelopes that an agent signs with its own key (PROTOCOL.md section 3). */

import { ed25519 } from './crypto.js';
import { isRefused, ParleyError } from './errors.js';
import { canonical, toHex } from './json.js';
import type { Draft, Head } from './wire.js';

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** A principal's token: its URI as one NATS subject token (PROTOCOL.md section 1). */
export function tokenOf(uri: string): string {
  const [scheme, name = ''] = uri.split('://');
  const spelt = Array.from(new TextEncoder().encode(name), (b) => {
    const c = String.fromCharCode(b);
    if (/[a-z0-9-]/.test(c)) return c;
    return c === '.' ? '_' : c === '/' ? '~' : `=${b.toString(16).padStart(2, '0')}`;
  });
  return (scheme === 'human' ? '@' : '') + spelt.join('');
}

/** The 32 bytes of an nkey's seed (`SU…`). */
export function rawSeed(seed: string): Uint8Array {
  const bytes = decoded(seed);
  if (bytes.length !== 36 || !seed.startsWith('SU')) throw new ParleyError('the seed is none of a user (SU…)');
  return bytes.slice(2, 34);
}

/** The 32 bytes of a public nkey (`U…`). */
export function rawKey(key: string): Uint8Array {
  const bytes = decoded(key);
  if (bytes.length !== 35 || !key.startsWith('U')) throw new ParleyError('the key is none of a user (U…)');
  return bytes.slice(1, 33);
}

function decoded(text: string): Uint8Array {
  let bits = 0;
  let value = 0;
  const bytes: number[] = [];
  for (const c of text) {
    const n = base32.indexOf(c);
    if (n < 0) throw new ParleyError('that is no nkey');
    value = ((value << 5) | n) & 0xffff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes.push((value >> bits) & 0xff);
    }
  }
  const [low = 0, high = 0] = bytes.slice(-2);
  if (checksum(bytes.slice(0, -2)) !== (high << 8 | low)) throw new ParleyError('that is no nkey: it was mistyped, or cut off');
  return Uint8Array.from(bytes);
}

/** CRC-16/XMODEM, with which an nkey ends. */
function checksum(bytes: number[]): number {
  let crc = 0;
  for (const b of bytes) {
    crc ^= b << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
  }
  return crc;
}

/** How many milliseconds the broker's clock, which a stale_timestamp names, is ahead of this one. */
export function aheadOf(error: unknown): number | undefined {
  const now = isRefused(error, 'stale_timestamp') ? (error.details as { now?: string } | undefined)?.now : undefined;
  return now === undefined ? undefined : Date.parse(now) - Date.now();
}

/** Signs as one principal. */
export class Signer {
  #signs: ReturnType<typeof ed25519> | undefined;
  readonly #seed: Uint8Array;

  constructor(readonly agent: string, seed: string) {
    this.#seed = rawSeed(seed);
  }

  /** The 64 bytes of a signature. */
  async sign(data: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
    this.#signs ??= ed25519(this.#seed);
    return (await this.#signs)(data);
  }

  /** The signed envelope of an act, on the entry that is the head, and what opens it. */
  async submission(session: string, draft: Draft, head: Head | undefined, messageId: string, now: Date): Promise<string> {
    const integrity: Record<string, unknown> = head ? { previousHash: head.hash } : {};
    const envelope: Record<string, unknown> = {
      version: 'asp/0.1', messageId, sessionId: session, timestamp: now.toISOString(), sender: { agentId: this.agent },
      performative: draft.performative, content: { body: draft.body }, integrity,
      recipient: draft.recipient, sequenceNumber: head && head.n + 1,
    };
    integrity['signature'] = `ed25519:${toHex(await this.sign(new TextEncoder().encode(canonical(envelope))))}`;
    return JSON.stringify(draft.opens ? { envelope, sealed: draft.opens } : envelope);
  }
}
