/**
 * COSE Receipts (RFC 9942, `RFC9162_SHA256`) of leaves of a broker's public log. A receipt shows to who knows nothing of
 * the log's own form that a leaf is in it. It is signed by a key that signs nothing else: `log.receiptKey` of `broker.info`.
 * @packageDocumentation
 */

import { bytesOf, Hashes, leadsTo, ProofError, readCheckpoint, type Bytes } from './publiclog.js';

const prefix = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00]; // before the key in its SubjectPublicKeyInfo
const [algorithm, structure, proofs, inclusion] = [1n, 395n, 396n, -1n];
const [edDSA, rfc9162, sign1] = [-8n, 1n, 18n];
const [longest, deepest] = [63, 8]; // hashes of a proof, and levels

/** The 32 bytes of the Ed25519 key in a PEM; throws if it is none. */
export function receiptKey(pem: string): Bytes {
  const found = /^\s*-----BEGIN PUBLIC KEY-----\n([A-Za-z0-9+/=\n]+)-----END PUBLIC KEY-----\s*$/.exec(pem);
  const raw = bytesOf((found?.[1] ?? '').replaceAll('\n', ''));
  if (raw.length !== prefix.length + 32 || !prefix.every((b, i) => raw[i] === b)) throw new ProofError('the key of receipts is no Ed25519 key in PEM');
  return raw.slice(prefix.length);
}

/**
 * Check that a receipt is of a leaf at an index of the log that a checkpoint is of, signed by the key of receipts (PEM). The
 * checkpoint is taken as it is: `verifyInclusion` checks that.
 */
export async function verifyReceipt(receipt: Uint8Array, key: string, leaf: object, index: number, checkpoint: string): Promise<void> {
  const verifier = await crypto.subtle.importKey('raw', receiptKey(key), { name: 'Ed25519' }, false, ['verify']);
  const { checkpoint: tree } = readCheckpoint(checkpoint);
  const { protected: headers, signature, size, at, path } = parts(receipt);
  if (size !== tree.size || at !== index || index < 0 || index >= size) {
    throw new ProofError(`the receipt is of leaf ${at} of ${size}; the proof, of ${index} of ${tree.size}`);
  }
  await leadsTo(tree, leaf, index, new Hashes(path));
  const root = bytesOf(tree.root);
  const signed = Uint8Array.from([0x84, ...text('Signature1'), ...string(headers), 0x40, ...string(root)]);
  if (!(await crypto.subtle.verify({ name: 'Ed25519' }, verifier, signature, signed))) {
    throw new ProofError('the receipt is not signed by the key of receipts');
  }
}

interface Parts {
  protected: Bytes;
  signature: Bytes;
  size: number;
  at: number;
  path: Bytes[];
}

/** What a receipt says: a COSE_Sign1 without its payload, with one proof. */
function parts(receipt: Uint8Array): Parts {
  const message = new Reader(receipt).whole();
  if (!(message instanceof Tagged) || message.tag !== sign1) throw malformed('it is no COSE_Sign1');
  const [headers, unprotected, payload, signature, ...more] = list(message.value);
  const kinds = only(unprotected, proofs);
  const [proof, ...others] = list(only(kinds, inclusion));
  if (payload !== null || more.length > 0 || others.length > 0) throw malformed('it has a payload, or more than one proof');
  const said = new Reader(bytes(headers)).whole();
  if (!(said instanceof Map) || said.get(algorithm) !== edDSA || said.get(structure) !== rfc9162) throw malformed('it is of another algorithm or structure');
  const [size, at, hashes, ...rest] = list(new Reader(bytes(proof)).whole());
  const path = list(hashes).map(bytes);
  if (typeof size !== 'bigint' || typeof at !== 'bigint' || rest.length > 0 || path.length > longest || path.some((hash) => hash.length !== 32)) {
    throw malformed('it has no path of hashes');
  }
  return { protected: bytes(headers), signature: bytes(signature), size: Number(size), at: Number(at), path };
}

const malformed = (why: string): ProofError => new ProofError(`it is no COSE Receipt with one inclusion proof of RFC9162_SHA256: ${why}`);

function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw malformed('it has something else in place of a list');
  return value;
}

function bytes(value: unknown): Bytes {
  if (!(value instanceof Uint8Array)) throw malformed('it has something else in place of bytes');
  return Uint8Array.from(value);
}

/** The one value of a map. */
function only(map: unknown, label: bigint): unknown {
  if (!(map instanceof Map) || map.size !== 1 || !map.has(label)) throw malformed('it has other headers');
  return map.get(label);
}

class Tagged {
  constructor(readonly tag: bigint, readonly value: unknown) {}
}

/** Reads CBOR in its deterministic form (RFC 8949, 4.2.1), as far as a receipt has it. Integers are of type bigint. */
class Reader {
  #at = 0;

  constructor(readonly data: Uint8Array) {}

  whole(): unknown {
    const value = this.#value(0);
    if (this.#at !== this.data.length) throw malformed('there are bytes after its end');
    return value;
  }

  #value(depth: number): unknown {
    const first = this.#bytes(1)[0]!;
    const [major, info] = [first >> 5, first & 31];
    if (depth > deepest || (major === 7 && info !== 22)) throw malformed('it has a value that no receipt has');
    if (major === 7) return null;
    const n = this.#argument(info);
    switch (major) {
      case 0: return n;
      case 1: return -1n - n;
      case 2: return this.#bytes(n);
      case 3: return this.#text(n);
      case 4: {
        const all: unknown[] = [];
        for (let i = 0n; i < n; i++) all.push(this.#value(depth + 1));
        return all;
      }
      case 5: return this.#map(n, depth);
      default: return new Tagged(n, this.#value(depth + 1));
    }
  }

  #text(n: bigint): string {
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(this.#bytes(n));
    } catch {
      throw malformed('it has a text that is none');
    }
  }

  #map(n: bigint, depth: number): Map<unknown, unknown> {
    const all = new Map<unknown, unknown>();
    let before = '';
    for (let i = 0n; i < n; i++) {
      const from = this.#at;
      const label = this.#value(depth + 1);
      const now = String.fromCharCode(...this.data.subarray(from, Math.min(this.#at, from + 99)));
      if (now <= before) throw malformed('the labels of a map are not in order');
      before = now;
      all.set(label, this.#value(depth + 1));
    }
    return all;
  }

  #argument(info: number): bigint {
    if (info < 24) return BigInt(info);
    if (info > 27) throw malformed('it has no end');
    const length = 1 << (info - 24);
    let n = 0n;
    for (const b of this.#bytes(length)) n = (n << 8n) | BigInt(b);
    if (n < (length === 1 ? 24n : 1n << BigInt(4 * length))) throw malformed('a number is not in its shortest form');
    return n;
  }

  #bytes(n: number | bigint): Uint8Array {
    if (BigInt(n) > BigInt(this.data.length - this.#at)) throw malformed('it is cut off');
    this.#at += Number(n);
    return this.data.subarray(this.#at - Number(n), this.#at);
  }
}

const head = (major: number, n: number): number[] => (n < 24 ? [(major << 5) | n] : n < 256 ? [(major << 5) | 24, n] : [(major << 5) | 25, n >> 8, n & 255]);
const text = (s: string): number[] => [...head(3, s.length), ...new TextEncoder().encode(s)];
const string = (raw: Uint8Array): number[] => [...head(2, raw.length), ...raw];
