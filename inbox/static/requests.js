// Requests to the inbox. URLs are relative to this module, because a reverse proxy may
// add a prefix.

import * as keys from './keys.js';

export const root = new URL('../../', import.meta.url);

// sentence capitalizes a message of the broker, and names principals as people do.
const named = (s) => s.replace(/\b(?:agent|human):\/\/([a-z0-9.-]+)\/([^\s,;:"”)]*[^\s,;:."”)])/g, '$2 of $1');
const sentence = (s) => (/^\S*:\/\//.test(s) ? named(s) : s.charAt(0).toUpperCase() + named(s).slice(1));

// A Refusal is an error reply.
export class Refusal extends Error {
  constructor(status, error) {
    super(sentence(error.message || 'no reply'));
    this.status = status;
    this.code = error.code || '';
    this.details = error.details;
  }
}

const { me } = document.body.dataset; // whose page this is; somebody else may have signed in since

async function request(path, options = {}) {
  const headers = { 'Parley-Inbox': me ?? '1', ...options.headers };
  try {
    return await fetch(new URL(path, root), { ...options, headers, redirect: 'manual', credentials: 'same-origin' });
  } catch {
    throw new Refusal(0, { code: 'unavailable', message: 'Cannot reach the inbox. Nothing is lost; try again.' });
  }
}

const once = (path, body) => reply(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });

async function reply(path, options) {
  const answer = await request(path, options);
  let data = {};
  try { data = await answer.json(); } catch { /* not from the inbox, such as a proxy's error page */ }
  if (!answer.ok) throw new Refusal(answer.status, data.error || {});
  return data;
}

// What all tabs share.
export function stored(key) {
  try { return localStorage.getItem(key); } catch { return null; }
}
export function store(key, value) {
  try { localStorage.setItem(key, value); } catch { /* the browser stores nothing */ }
}

export const locked = 'parley-locked';
export const isLocked = () => stored(locked) === 'yes';
const unlock = () => { store(locked, ''); store('parley-input', Date.now()); };

// again signs in again after the server's sign-in has expired.
async function again() {
  if (isLocked()) return false;
  const key = await keys.current().catch(() => undefined);
  return key && !key.guard && (!me || key.agentId === me) ? enter(key).then(() => true, () => false) : false; // a guarded key asks the human
}

async function withLogin(call) {
  try {
    return await call();
  } catch (error) {
    if (error.status !== 401 || error.code !== 'unauthorized' || !(await again())) throw error;
    return call();
  }
}

export const post = (path, body) => withLogin(() => once(path, body));

// get fetches an answer as JSON.
export const get = (path) => withLogin(() => reply(path));

// part fetches a part of a page as HTML.
export const part = (path) => withLogin(async () => {
  const answer = await request(path);
  const html = await answer.text();
  if (answer.status === 401) throw new Refusal(401, { code: 'unauthorized', message: 'You are signed out.' });
  if (answer.headers.get('Content-Type')?.startsWith('application/json')) throw new Refusal(answer.status, JSON.parse(html).error); // no page at all
  return { ok: answer.ok, html };
});

async function proof(key, purpose = 'parley inbox sign-in') {
  const { challenge } = await once('challenge', {});
  const signed = keys.canonical({ challenge, origin: location.origin, purpose });
  return { challenge, key: key.public, signature: await keys.sign(key, signed) };
}

export async function enter(key) {
  const answer = await once('login', { agentId: key.agentId, ...(await proof(key)) });
  unlock();
  return answer;
}

export async function enrol(code, name, guarded) {
  const key = await keys.make(guarded);
  const answer = await once('enrol', { code, name, ...(await proof(key)) });
  await keys.keep({ ...key, agentId: answer.agentId });
  if (!answer.openid) unlock();
  return answer;
}

// callback signs in with what the OpenID provider gave to this browser, and with its key, if it has one.
export async function callback({ code, state, error }) {
  const key = await keys.current().catch(() => undefined);
  const answer = await once('callback', { code, state, error, ...(key && !error && await proof(key).catch(() => ({}))) });
  unlock();
  return answer;
}

// revoke has one of the human's own keys signed out for good: it is true while this
// browser is still signed in.
export async function revoke(device) {
  const key = await keys.current();
  const { signedIn } = await post('unenrol', { revoke: device, ...(key && await proof(key, 'parley inbox: revoke ' + device)) });
  if (!signedIn) await keys.forget();
  return signedIn;
}

// unseal opens to the arbiter what principals have sealed of an escalation.
export async function unseal(escalationId, sealers) {
  const key = await keys.current();
  return post('unseal', { escalationId, sealers, ...(key && await proof(key, ['parley inbox: unseal', escalationId, ...sealers].join(' '))) });
}

// feed makes a feed for a calendar program.
export async function feed() {
  const key = await keys.current();
  return post('feed', key ? await proof(key, 'parley inbox: calendar feed') : {});
}

export async function be(agentId) {
  await once('login', { agentId });
  unlock();
}

export async function leave() {
  await once('logout', {});
}
