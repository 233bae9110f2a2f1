// An act: an envelope that is built and signed here.

import * as keys from './keys.js';
import { now } from './clock.js';
import { post } from './requests.js';

// made builds and signs an act of the human. The caller keeps it until it is answered,
// so that a retry is the same act.
export async function made(sessionId, performative, body) {
  const at = now();
  const me = document.body.dataset.me;
  const envelope = {
    version: 'asp/0.1', messageId: keys.newID(at), sessionId, timestamp: new Date(at).toISOString(),
    sender: { agentId: me }, performative, content: { mimeType: 'application/json', body }, integrity: {},
  };
  if ('dev' in document.body.dataset) return envelope;
  envelope.broker = document.body.dataset.broker || undefined; // no other broker accepts it
  const key = await keys.current();
  if (!key || key.agentId !== me) throw new Error('This browser has no key that signs for you: sign out, and enrol it with a code from an operator.');
  envelope.integrity.signature = await keys.sign(key, keys.canonical(envelope));
  return envelope;
}

// send submits an act with what opens its sealed members, if it has some.
export const send = (envelope, parts = {}) => post('submit', { sessionId: envelope.sessionId, envelope: Object.keys(parts).length ? { envelope, sealed: parts } : envelope });
