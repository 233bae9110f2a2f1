// Several items at once: they are denied or handed over, each by an act of its own.

import { $, all, put, queue, rows, say, toDoor, told } from './dom.js';
import * as act from './act.js';
import { ruling } from './forms.js';
import { refreshQueue } from './panes.js';
import * as picks from './picks.js';
import * as requests from './requests.js';

const dialog = $('#several');
const sent = new WeakMap(); // item → {said, made}: without a definite reply

// ask opens the form that lists what will be done.
export async function ask(what) {
  const ids = picks.picked();
  if (!ids.length || document.querySelector('dialog[open]')) return;
  try {
    const answer = await requests.part('part/several?' + new URLSearchParams([['do', what], ...ids.map((id) => ['id', id])]));
    put(dialog, answer.html);
    if (document.querySelector('dialog[open]')) return;
    dialog.showModal();
    $('select, textarea, button', dialog)?.focus();
  } catch (error) {
    if (error.status === 401) return toDoor();
    say(told(error));
  }
}

async function one(form, of) {
  const text = form.elements.comment.value.trim();
  if (form.dataset.what === 'pass') return requests.post('call/escalation.transfer', { escalationId: of.dataset.id, to: form.elements.to.value, reason: text || undefined });
  const sealed = form.elements.sealComment.checked ? ['comment'] : [];
  const said = JSON.stringify([text, sealed]);
  if (sent.get(of)?.said !== said) sent.set(of, { said, made: await ruling(of.dataset, 'denied', text, undefined, sealed) });
  return act.send(...sent.get(of).made);
}

// send acts on one item after the other. What fails says so, and the others stand.
export async function send(form) {
  const submit = $('button[type=submit]', form);
  if (submit.disabled || !form.reportValidity()) return;
  submit.disabled = true;
  const done = form.dataset.what === 'deny' ? 'Denied' : 'Handed over';
  const open = all('li[data-able]:not([data-done])', form);
  let failed = 0;
  for (const of of open) {
    const result = $('.result', of);
    try {
      await one(form, of);
      of.dataset.done = 'yes';
      result.textContent = done + '.';
      picks.pick(of.dataset.id, false);
    } catch (error) {
      if (error.status === 401) return toDoor();
      if (error.status) sent.delete(of); // answered: a retry is a new act
      failed++;
      result.textContent = 'Failed: ' + told(error);
    }
  }
  submit.disabled = false;
  await refreshQueue();
  const count = all('li[data-done]', form).length;
  if (failed) {
    $('.news', form).textContent = `${done}: ${count} of ${count + failed}. The others failed, for the reasons above; what was done stands. Sign again to try them again.`;
    return;
  }
  form.closest('dialog').close();
  say(`${done}: ${count} ${count === 1 ? 'item' : 'items'}.`);
  (rows()[0] ?? queue).focus();
}
