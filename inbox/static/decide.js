// A decision: built from the form and the item that was shown, and signed here.

import * as keys from './keys.js';
import { now } from './clock.js';
import { post } from './talk.js';

// made builds and signs the envelope of a decision. The caller keeps it until it is
// answered, so that a retry is the same decision.
export async function made(item, decision, comment, authority) {
  const at = now();
  const me = document.body.dataset.me;
  const data = { escalationId: item.id, decision, revision: Number(item.revision), shown: item.shown || undefined };
  if (comment) data.comment = comment;
  if (authority) data.authority = authority;
  const envelope = {
    version: 'asp/0.1', messageId: keys.newID(at), sessionId: item.session, timestamp: new Date(at).toISOString(),
    sender: { agentId: me }, performative: 'INFORM',
    content: { mimeType: 'application/json', body: { type: 'resolution', data } }, integrity: {},
  };
  if ('dev' in document.body.dataset) return envelope;
  envelope.broker = document.body.dataset.broker || undefined; // no other broker accepts it
  const key = await keys.current();
  if (!key || key.agentId !== me) throw new Error('This browser’s key is missing: sign out and enrol again.');
  envelope.integrity.signature = await keys.sign(key, keys.canonical(envelope));
  return envelope;
}

export const send = (envelope) => post('submit', { sessionId: envelope.sessionId, envelope });
