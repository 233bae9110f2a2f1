/**
 * Proofs of a broker's public log (PROTOCOL.md, the public log): RFC 6962 trees under signed checkpoints. They
 * need only the log's verifier key, as `parley log key` prints it.
 * @packageDocumentation
 */

import { ParleyError } from './errors.js';
import { canonical, toHex } from './json.js';

/** The checkpoint is not the log's, or does not prove it. */
export class ProofError extends ParleyError {
  override name = 'ProofError';
}

/** A signed size and root of a log. */
export interface Checkpoint {
  origin: string;
  size: number;
  /** In base64. */
  root: string;
}

/** Bytes as WebCrypto takes them. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** Read a checkpoint that the log has signed; `key` is `<origin>+<hash>+<base64>`, of a signed note (C2SP). */
export async function openCheckpoint(text: string, key: string): Promise<Checkpoint> {
  const [name, hashed, ...rest] = key.split('+');
  const raw = bytesOf(rest.join('+'));
  const { checkpoint, signed, signatures } = readCheckpoint(text);
  for (const line of signatures.split('\n')) {
    const [dash, by, signature = ''] = line.split(' ');
    const found = bytesOf(signature);
    if (dash !== '—' || by !== name || by !== checkpoint.origin || toHex(found.slice(0, 4)) !== hashed || raw[0] !== 1 || Number.isNaN(checkpoint.size)) continue;
    const verifier = await crypto.subtle.importKey('raw', raw.slice(1), { name: 'Ed25519' }, false, ['verify']);
    if (await crypto.subtle.verify({ name: 'Ed25519' }, verifier, found.slice(4), new TextEncoder().encode(signed))) {
      return checkpoint;
    }
  }
  throw new ProofError('the log did not sign this checkpoint');
}

/** A checkpoint without a look at who signed it, what is signed, and the signatures. Its size is NaN if it has none. @internal */
export function readCheckpoint(text: string): { checkpoint: Checkpoint; signed: string; signatures: string } {
  const end = text.lastIndexOf('\n\n') + 1;
  const signed = text.slice(0, end);
  const [origin = '', size = '', root = ''] = signed.split('\n');
  return { checkpoint: { origin, size: /^\d+$/.test(size) ? Number(size) : NaN, root }, signed, signatures: text.slice(end + 1) };
}

/** Check that a leaf is in the log at an index; `proof` has the hashes from the leaf to the root, in base64. */
export async function verifyInclusion(leaf: object, index: number, proof: readonly string[], checkpoint: string, key: string): Promise<Checkpoint> {
  const c = await openCheckpoint(checkpoint, key);
  if (!Number.isInteger(index) || index < 0 || index >= c.size) throw new ProofError(`the checkpoint has ${c.size} leaves`);
  await leadsTo(c, leaf, index, new Hashes(proof.map(bytesOf)));
  return c;
}

/** Check that hashes lead from a leaf to the root of a checkpoint, which is taken as it is. @internal */
export async function leadsTo(c: Checkpoint, leaf: object, index: number, hashes: Hashes): Promise<void> {
  let node = await hash(0, new TextEncoder().encode(canonical(leaf)));
  for (let last = c.size - 1; last > 0; index = Math.floor(index / 2), last = Math.floor(last / 2)) {
    if (index % 2 === 1) node = await hash(1, hashes.next(), node);
    else if (index < last) node = await hash(1, node, hashes.next());
  }
  if (hashes.left > 0 || !same(node, bytesOf(c.root))) throw new ProofError('the proof does not lead to the root of the checkpoint');
}

/** Check that a newer checkpoint's log begins with all that the older one had (RFC 9162, 2.1.4.2). */
export async function verifyConsistency(older: string, newer: string, proof: readonly string[], key: string): Promise<[Checkpoint, Checkpoint]> {
  const [a, b] = [await openCheckpoint(older, key), await openCheckpoint(newer, key)];
  const hashes = new Hashes(proof.map(bytesOf));
  if (a.size > b.size || a.size < 1) throw new ProofError('the newer checkpoint has fewer leaves');
  if (a.size === b.size) {
    if (hashes.left > 0 || a.root !== b.root) throw new ProofError('two checkpoints of one size have different roots');
    return [a, b];
  }
  let index = a.size - 1;
  let last = b.size - 1;
  const up = (): void => {
    index = Math.floor(index / 2);
    last = Math.floor(last / 2);
  };
  while (index % 2 === 1) up();
  let first = index === 0 ? bytesOf(a.root) : hashes.next();
  let second = first;
  for (; last > 0; up()) {
    if (index % 2 === 1) {
      const sibling = hashes.next();
      [first, second] = [await hash(1, sibling, first), await hash(1, sibling, second)];
    } else if (index < last) second = await hash(1, second, hashes.next());
  }
  if (hashes.left > 0 || !same(first, bytesOf(a.root)) || !same(second, bytesOf(b.root))) {
    throw new ProofError('the newer log is not a continuation of the older one');
  }
  return [a, b];
}

/** The hashes of a proof, one after the other. @internal */
export class Hashes {
  readonly #all: Uint8Array[];

  constructor(proof: readonly Uint8Array[]) {
    this.#all = [...proof];
  }

  get left(): number {
    return this.#all.length;
  }

  next(): Uint8Array {
    const found = this.#all.shift();
    if (!found) throw new ProofError('a hash of the proof is missing');
    return found;
  }
}

async function hash(kind: number, ...parts: Uint8Array[]): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', Uint8Array.from([kind, ...parts.flatMap((part) => [...part])])));
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return toHex(a) === toHex(b);
}

/** @internal */
export function bytesOf(base64: string): Bytes {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
