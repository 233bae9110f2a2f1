// A decision: made of what the person saw and said, signed here, sent as it is.

import * as keys from './keys.js';
import { now } from './clock.js';
import { post } from './talk.js';

// made is the envelope of one decision. It is kept until it is answered, so that
// sending it again is the same decision and not another one.
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
  envelope.broker = document.body.dataset.broker || undefined; // no other broker hears it
  const key = await keys.current();
  if (!key || key.agentId !== me) throw new Error('The key of this browser is gone: sign out, and enrol it again.');
  envelope.integrity.signature = await keys.sign(key, keys.canonical(envelope));
  return envelope;
}

export const send = (envelope) => post('submit', { sessionId: envelope.sessionId, envelope });

// authority reads the bounds in a form; undefined is none.
export function authority(form) {
  const value = (name) => (form.elements[name]?.value ?? '').trim();
  const bounds = {};
  if (form.dataset.decision === 'approved') {
    if (!form.elements.bounded?.checked) return undefined;
    if (value('maxAmount') === '') throw new Error('Up to which amount?');
    bounds.maxAmount = Number(value('maxAmount'));
    if (value('termPath')) bounds.termPath = value('termPath');
  } else if (form.dataset.decision === 'modified') {
    const chosen = form.querySelector('input[name=bound]:checked');
    if (chosen) {
      const field = [...form.querySelectorAll('[data-term]')].find((f) => f.dataset.term === chosen.value);
      if (field.value === '') throw new Error('Up to which amount?');
      bounds.maxAmount = Number(field.value);
      bounds.termPath = chosen.value;
    }
  } else {
    return undefined;
  }
  if (bounds.maxAmount !== undefined && value('currency')) bounds.currency = value('currency').toUpperCase();
  if (value('validUntil')) {
    const until = new Date(value('validUntil'));
    if (until.getTime() <= now()) throw new Error('The time until which this holds is over already.');
    bounds.validUntil = until.toISOString();
  }
  return Object.keys(bounds).length ? bounds : undefined;
}

// comment is what the person wrote, and in a modification the other terms that
// they changed, which no authority can bound.
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
