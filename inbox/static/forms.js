// The forms of an item: decisions, notes and hand-overs.

import { $, all, item, main, parsed, say, toDoor } from './dom.js';
import * as bounds from './bounds.js';
import * as clock from './clock.js';
import * as decide from './decide.js';
import * as drafts from './drafts.js';
import * as talk from './talk.js';
import { decided, open, refreshQueue } from './panes.js';

let pending; // {form, said, envelope}: sent, without a definite reply

export const writing = () => $('dialog[open] form', main);

// ready prepares the forms of an item that was just inserted.
export function ready() {
  drafts.restore();
  for (const form of all('form[data-decision=approved]', main)) bounds.extent(form);
}

export function openForm(name) {
  const dialog = document.getElementById(name);
  if (!dialog || !$(`[data-open="${name}"]`, main) || document.querySelector('dialog[open]')) return;
  pending = undefined;
  const form = $('form', dialog);
  delete form.dataset.warned;
  delete form.dataset.stale;
  show(form, '', '');
  dialog.showModal();
  ($('textarea', dialog) ?? $('select, button', dialog)).focus();
}

// show puts news and a refusal into an open form.
function show(form, refused, news) {
  if (refused !== undefined && $('.refused', form)) $('.refused', form).textContent = refused;
  if (news !== undefined && $('.news', form)) $('.news', form).textContent = news;
}

function look(form) {
  const button = document.createElement('button');
  button.type = 'button';
  button.dataset.do = 'look';
  button.textContent = 'Show the current version';
  $('.refused', form).append(' ', button);
}

// forPeople words a refusal that names fields of the protocol.
function forPeople(error) {
  if (error.code !== 'schema_invalid') return error.message;
  const broken = (rule) => error.details?.errors?.some((e) => e.rule === rule);
  if (broken('reason')) return 'Your rules want a reason to deny.';
  return broken('changes') ? 'This allows just what was asked for. Change a bound, or choose Approve instead.' : 'The broker cannot read this form. Check what you entered; nothing was signed.';
}

export async function sign(form) {
  const submit = $('button[type=submit]', form);
  if (submit.disabled || form.dataset.stale) return; // a double click, or what is decided has changed
  show(form, '', undefined);
  const wrong = $('input:invalid, textarea:invalid', form);
  if (wrong) {
    for (let e = wrong.closest('details'); e; e = e.parentElement.closest('details')) e.open = true;
    form.reportValidity();
    return;
  }
  submit.disabled = true;
  const shown = item();
  try {
    const { authority, warnings } = bounds.authority(form);
    if (warnings.length && form.dataset.warned !== warnings.join()) {
      form.dataset.warned = warnings.join();
      show(form, undefined, warnings.join(' ') + ' Sign again to confirm.');
      return;
    }
    const comment = form.elements.comment.value.trim();
    const said = JSON.stringify([authority, comment, shown.dataset.shown]);
    if (pending?.form !== form || pending.said !== said) {
      pending = { form, said, envelope: await decide.made(shown.dataset, form.dataset.decision, comment, authority) };
    }
    const accepted = await decide.send(pending.envelope);
    pending = undefined;
    drafts.drop(form);
    form.closest('dialog').close();
    await Promise.all([open(shown.dataset.id, { push: false }), refreshQueue()]);
    const paused = accepted.state === 'ESCALATED';
    const waits = paused && item()?.dataset.status === 'open';
    const after = paused ? 'It waits for the other organisation.' : accepted.state === 'CLOSED' ? 'The session is over.' : `The session continues (${accepted.state}).`;
    say(waits ? `Signed: ${item()?.dataset.tally ?? ''}. More approvals are needed before the session continues.` : `Signed: ${form.dataset.decision}. ${after}`);
    if (!waits) decided();
  } catch (error) {
    await failed(form, error);
  } finally {
    submit.disabled = false;
  }
}

async function failed(form, error) {
  if (error.status === 401) return toDoor();
  if (error.status) pending = undefined; // answered: a retry is a new act
  if (error.status === 409 && (await fresh(form))) return;
  show(form, forPeople(error), undefined);
  error.field?.focus();
  if (error.status === 409) look(form);
}

// fresh takes over what has changed around an open form. It is false if what is
// decided has changed, too.
async function fresh(form) {
  const answer = await talk.part('part/items/' + item().dataset.id).catch(() => undefined);
  return Boolean(answer?.ok) && behind(form, answer.html);
}

// behind shows, in an open form, what has changed on the item behind it. Where that is
// around the decision, such as a note, the form stays as it is and can be signed.
export function behind(form, html) {
  const shown = item();
  const there = $('#item', parsed(html));
  if (!there || there.dataset.shown === shown.dataset.shown && there.dataset.status === shown.dataset.status && there.dataset.claim === shown.dataset.claim) return true;
  if (there.dataset.matter !== shown.dataset.matter) {
    if ($('button[type=submit]', form).disabled) return false;
    form.dataset.stale = 'yes';
    show(form, there.dataset.status === 'open' ? 'This item has changed while you were deciding.' : `Already decided: ${there.dataset.status}.`, '');
    look(form);
    return false;
  }
  const known = new Set(all('.desk .notes li', shown).map((li) => li.textContent));
  const notes = all('.desk .notes li', there).filter((li) => !known.has(li.textContent));
  const news = notes.map((li) => `${$('.by b', li).textContent} wrote a note: “${$('p', li).textContent}”`);
  if (there.dataset.claim !== shown.dataset.claim || !news.length) news.push(...all('.notice', there).map((n) => n.textContent));
  const kept = new Set(all(':scope > dialog', shown));
  for (const child of [...shown.childNodes]) if (!kept.has(child)) child.remove();
  shown.prepend(...[...there.childNodes].filter((n) => n.nodeName !== 'DIALOG'));
  for (const { name, value } of there.attributes) shown.setAttribute(name, value);
  clock.start(shown);
  drafts.restore();
  delete form.dataset.warned;
  show(form, '', [$('.news', form)?.textContent, ...news].filter(Boolean).join(' '));
  return true;
}

// call calls a verb on the item, and shows what it changed. It is false if it failed.
export async function call(verb, request, done) {
  const id = item().dataset.id;
  let ok = true;
  try {
    await talk.post('call/escalation.' + verb, { escalationId: id, ...request });
    if (done) say(done);
  } catch (error) {
    if (error.status === 401) return toDoor();
    ok = false;
    say(error.message);
  }
  await Promise.all([open(id, { push: false }), refreshQueue()]);
  return ok;
}

// note sends a note or a hand-over. Its draft ends once the broker has it.
export async function note(form) {
  const submit = $('button[type=submit], button:not([type])', form);
  if (submit.disabled) return;
  submit.disabled = true;
  const id = item().dataset.id;
  try {
    if (form.dataset.do === 'comment') {
      await talk.post('call/escalation.comment', { escalationId: id, text: form.elements.text.value.trim() });
    } else {
      const to = form.elements.to;
      await talk.post('call/escalation.transfer', { escalationId: id, to: to.value, reason: form.elements.reason.value.trim() || undefined });
    }
    drafts.drop(form);
    form.closest('dialog')?.close();
    say(form.dataset.do === 'comment' ? 'Note added.' : 'Handed over.');
    main.focus({ preventScroll: true });
    await Promise.all([open(id, { push: false }), refreshQueue()]);
  } catch (error) {
    if (error.status === 401) return toDoor();
    if ($('.refused', form)) show(form, error.message, undefined);
    else say(error.message);
  } finally {
    submit.disabled = false;
  }
}
