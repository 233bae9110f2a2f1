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

// authority reads the bounds from a form; undefined means none.
export function authority(form) {
  const value = (name) => (form.elements[name]?.value ?? '').trim();
  const bounds = {};
  if (form.dataset.decision === 'approved') {
    if (!form.elements.bounded?.checked) return undefined;
    if (value('maxAmount') === '') throw new Error('Enter the maximum amount.');
    bounds.maxAmount = Number(value('maxAmount'));
    if (value('termPath')) bounds.termPath = value('termPath');
  } else if (form.dataset.decision === 'modified') {
    const chosen = form.querySelector('input[name=bound]:checked');
    if (chosen) {
      const field = [...form.querySelectorAll('[data-term]')].find((f) => f.dataset.term === chosen.value);
      if (field.value === '') throw new Error('Enter the maximum amount.');
      bounds.maxAmount = Number(field.value);
      bounds.termPath = chosen.value;
    }
  } else {
    return undefined;
  }
  if (bounds.maxAmount !== undefined && value('currency')) bounds.currency = value('currency').toUpperCase();
  if (value('validUntil')) {
    const until = new Date(value('validUntil'));
    if (until.getTime() <= now()) throw new Error('“Valid until” is in the past.');
    bounds.validUntil = until.toISOString();
  }
  return Object.keys(bounds).length ? bounds : undefined;
}

// comment is the comment of a form. For a modification it lists the changed terms
// that no bound enforces.
export function comment(form) {
  const lines = [];
  const text = form.elements.comment.value.trim();
  if (text) lines.push(text);
  const bound = form.querySelector('input[name=bound]:checked')?.value;
  for (const field of form.querySelectorAll('[data-term]')) {
    if (field.dataset.term !== bound && field.value !== field.dataset.was) {
      lines.push(`${field.dataset.term}: ${field.value} instead of ${field.dataset.was}`);
    }
  }
  return lines.join('\n');
}
