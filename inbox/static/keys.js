// This browser's Ed25519 key. It is not extractable: IndexedDB stores the key object,
// never its bytes. A guarded key is stored encrypted instead, and asks for each use.

import * as guard from './guard.js';

const store = 'keys';

function database() {
  return new Promise((resolve, reject) => {
    const open = indexedDB.open('parley-inbox', 1);
    open.onupgradeneeded = () => open.result.createObjectStore(store);
    open.onsuccess = () => resolve(open.result);
    open.onerror = () => reject(open.error);
  });
}

async function inStore(mode, use) {
  const db = await database();
  try {
    return await new Promise((resolve, reject) => {
      const t = db.transaction(store, mode);
      const request = use(t.objectStore(store));
      t.oncomplete = () => resolve(request.result);
      t.onerror = t.onabort = () => reject(t.error);
    });
  } finally {
    db.close();
  }
}

// current returns {agentId, public, pair or guard} of the last enrolment, or undefined.
export const current = () => inStore('readonly', (s) => s.get('current'));
export const keep = ({ pair, ...key }) => inStore('readwrite', (s) => s.put(key.guard ? key : { ...key, pair }, 'current'));
export const forget = () => inStore('readwrite', (s) => s.delete('current'));

const hex = (buffer) => [...new Uint8Array(buffer)].map((b) => b.toString(16).padStart(2, '0')).join('');

// impossible returns why this browser cannot create a key, or ''.
export function impossible() {
  if (!globalThis.isSecureContext || !crypto.subtle) return 'Keys need HTTPS, or localhost.';
  if (!globalThis.indexedDB) return 'This browser does not store data for this page.';
  return '';
}

export async function make(guarded) {
  const key = {};
  try {
    key.pair = await crypto.subtle.generateKey('Ed25519', guarded, ['sign', 'verify']); // extractable until it is encrypted
    key.public = hex(await crypto.subtle.exportKey('raw', key.pair.publicKey));
  } catch {
    throw new Error('This browser does not support Ed25519 keys. Chrome 137, Firefox 129, Safari 17 and later do.');
  }
  if (guarded) key.guard = await guard.lock(key.pair.privateKey);
  return key;
}

// sign signs a text's UTF-8 and formats the signature as ASP does.
export async function sign(key, text) {
  const privateKey = key.pair?.privateKey ?? await guard.unlock(key.guard);
  return 'ed25519:' + hex(await crypto.subtle.sign('Ed25519', privateKey, new TextEncoder().encode(text)));
}

// canonical returns the RFC 8785 form of plain data. It sorts members by UTF-16 code
// units, as sort() does, and formats numbers as JSON.stringify does.
export function canonical(value) {
  if (Array.isArray(value)) return '[' + value.map(canonical).join(',') + ']';
  if (value && typeof value === 'object') {
    const members = Object.keys(value).filter((k) => value[k] !== undefined).sort();
    return '{' + members.map((k) => JSON.stringify(k) + ':' + canonical(value[k])).join(',') + '}';
  }
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Error('not a JSON number');
  if (typeof value === 'string' && !value.isWellFormed()) throw new Error('unpaired surrogate');
  return JSON.stringify(value);
}

// seal puts the digest of [salt, member, value] in the place of some members of plain data, and returns
// what opens them (PROTOCOL.md §7). Without HTTPS, which only --dev allows, a browser makes no digests:
// all stays open.
export async function seal(data, ...members) {
  if (!crypto.subtle) return {};
  const parts = {};
  for (const member of members.filter((name) => data[name] !== undefined)) {
    const salt = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32)))).replaceAll('+', '-').replaceAll('/', '_').replace('=', '');
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(canonical([salt, member, data[member]])));
    parts[member] = { salt, value: data[member] };
    data.sealed = { ...data.sealed, [member]: 'sha256:' + hex(digest) };
    delete data[member];
  }
  return parts;
}

// newID returns a UUIDv7 for a time in milliseconds.
export function newID(at) {
  const b = crypto.getRandomValues(new Uint8Array(16));
  for (let i = 5, ms = at; i >= 0; i--, ms = Math.floor(ms / 256)) b[i] = ms % 256;
  b[6] = 0x70 | (b[6] & 0x0f);
  b[8] = 0x80 | (b[8] & 0x3f);
  const h = hex(b.buffer);
  return `${h.slice(0, 8)}-${h.slice(8, 12)}-${h.slice(12, 16)}-${h.slice(16, 20)}-${h.slice(20)}`;
}
