// The key of this browser: Ed25519, made here, and not extractable. It is kept
// by IndexedDB, which stores the key itself and never its bytes.

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

// current is {agentId, pair, public} of who enrolled here last, or undefined.
export const current = () => inStore('readonly', (s) => s.get('current'));
export const keep = (key) => inStore('readwrite', (s) => s.put(key, 'current'));
export const forget = () => inStore('readwrite', (s) => s.delete('current'));

const hex = (buffer) => [...new Uint8Array(buffer)].map((b) => b.toString(16).padStart(2, '0')).join('');

// possible says why this browser can make no key, or nothing.
export function impossible() {
  if (!globalThis.isSecureContext || !crypto.subtle) return 'Keys need HTTPS, or localhost.';
  if (!globalThis.indexedDB) return 'This browser keeps no data for this page.';
  return '';
}

export async function make() {
  try {
    const pair = await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify']);
    return { pair, public: hex(await crypto.subtle.exportKey('raw', pair.publicKey)) };
  } catch {
    throw new Error('This browser has no Ed25519 keys; a newer one does (Chrome 137, Firefox 129, Safari 17).');
  }
}

// sign writes a signature of text's UTF-8 as ASP does.
export async function sign(key, text) {
  return 'ed25519:' + hex(await crypto.subtle.sign('Ed25519', key.pair.privateKey, new TextEncoder().encode(text)));
}

// canonical is the RFC 8785 form of plain data: members in the order of their
// UTF-16 code units, which is how sort() orders, and numbers as ECMAScript
// writes them, which is how JSON.stringify does.
export function canonical(value) {
  if (Array.isArray(value)) return '[' + value.map(canonical).join(',') + ']';
  if (value && typeof value === 'object') {
    const members = Object.keys(value).filter((k) => value[k] !== undefined).sort();
    return '{' + members.map((k) => JSON.stringify(k) + ':' + canonical(value[k])).join(',') + '}';
  }
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Error('a number that JSON has not');
  if (typeof value === 'string' && !value.isWellFormed()) throw new Error('half a character');
  return JSON.stringify(value);
}

// newID is a UUIDv7 at a time in milliseconds.
export function newID(at) {
  const b = crypto.getRandomValues(new Uint8Array(16));
  for (let i = 5, ms = at; i >= 0; i--, ms = Math.floor(ms / 256)) b[i] = ms % 256;
  b[6] = 0x70 | (b[6] & 0x0f);
  b[8] = 0x80 | (b[8] & 0x3f);
  const h = hex(b.buffer);
  return `${h.slice(0, 8)}-${h.slice(8, 12)}-${h.slice(12, 16)}-${h.slice(16, 20)}-${h.slice(20)}`;
}
