/** JSON as parley writes it: RFC 8785, so that the same value is the same bytes everywhere. */

import { sha256 } from './crypto.js';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

/** The RFC 8785 form of a value; members that are undefined are left out. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = value as Record<string, unknown>;
    const names = Object.keys(members).filter((name) => members[name] !== undefined).sort();
    return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(members[name])}`).join(',')}}`;
  }
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${value} is no number of JSON`);
  return JSON.stringify(value);
}

/** The digest of a file, as evidence names it: `sha256:` and hex digits. */
export async function digestOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return `sha256:${toHex(await sha256(bytes))}`;
}

/** A UUIDv7 that the same parts always make, in every SDK, so that what is said again is the same act. */
export async function uuid7Of(...parts: unknown[]): Promise<string> {
  const raw = (await sha256(new TextEncoder().encode(canonical(parts)))).slice(0, 16);
  raw[6] = (raw[6]! & 0x0f) | 0x70;
  raw[8] = (raw[8]! & 0x3f) | 0x80;
  const hex = toHex(raw);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** base64url without padding. */
export function toBase64(raw: Uint8Array): string {
  return btoa(String.fromCharCode(...raw)).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

const digits = Array.from({ length: 256 }, (_, b) => b.toString(16).padStart(2, '0'));

export function toHex(bytes: Uint8Array): string {
  let hex = '';
  for (const b of bytes) hex += digits[b];
  return hex;
}
