// The forms of an item: decisions, notes and hand-overs.

import { $, all, item, main, say, toDoor, told } from './dom.js';
import * as act from './act.js';
import * as amounts from './amounts.js';
import * as bounds from './bounds.js';
import * as drafts from './drafts.js';
import * as keys from './keys.js';
import * as requests from './requests.js';
import { behind, look, show } from './dialogs.js';
import { decided, open, refreshQueue } from './panes.js';

let pending; // {form, said, made}: sent, without a definite reply

export function openForm(name) {
  const dialog = document.getElementById(name);
  if (!dialog || !$(`[data-open="${name}"]`, main) || document.querySelector('dialog[open]')) return;
  pending = undefined;
  const form = $('form', dialog);
  delete form.dataset.warned;
  delete form.dataset.stale;
  show(form, '', '');
  if (form.elements.openAuthority) form.elements.openAuthority.checked = opens();
  bounds.free(form);
  amounts.opened(form);
  dialog.showModal();
  ($('textarea', dialog) ?? $('select, input, button', dialog)).focus();
}

// forPeople words a refusal that names fields of the protocol.
function forPeople(error) {
  if (error.code !== 'schema_invalid') return told(error);
  const broken = (rule) => error.details?.some?.((fault) => fault.rule === rule);
  if (broken('reason')) return 'Your rules want a reason to deny.';
  return broken('changes') ? 'This allows just what was asked for. Change a bound, or choose Approve instead.' : 'The broker cannot read this form. Check what you entered; nothing was signed.';
}

// opens reports whether the installation leaves rulings open.
const opens = () => 'openRulings' in document.body.dataset;

// seals are the members of a form's decision that only the human's own side reads.
function seals(form) {
  const guides = form.dataset.decision === 'guidance' && !opens();
  return [!form.elements.openAuthority?.checked && 'authority', (guides || form.elements.sealComment?.checked) && 'comment'].filter(Boolean);
}

// ruling builds and signs a decision on an item as it was shown: the envelope, and what opens it.
export async function ruling(of, decision, comment, authority, sealed) {
  const data = { escalationId: of.id, decision, revision: Number(of.revision), shown: of.shown || undefined };
  if (comment) data.comment = comment;
  if (authority) data.authority = authority;
  const parts = await keys.seal(data, ...sealed);
  return [await act.made(of.session, 'INFORM', { type: 'resolution', data }), parts];
}

// unfold shows a field.
function unfold(field) {
  for (let e = field.closest('details'); e; e = e.parentElement.closest('details')) e.open = true;
}

export async function sign(form) {
  const submit = $('button[type=submit]', form);
  if (!submit || submit.disabled || form.dataset.stale) return; // nothing to sign, a double click, or what is decided has changed
  show(form, '', undefined);
  const wrong = $('input:invalid, textarea:invalid', form);
  if (wrong) {
    unfold(wrong);
    form.reportValidity();
    return;
  }
  submit.disabled = true;
  const shown = item();
  try {
    const { authority, warnings } = await bounds.authority(form);
    if (warnings.length && form.dataset.warned !== warnings.join()) {
      form.dataset.warned = warnings.join();
      show(form, undefined, warnings.join(' ') + ' Sign again to confirm.');
      return;
    }
    const comment = form.elements.comment.value.trim();
    const sealed = seals(form);
    const said = JSON.stringify([authority, comment, shown.dataset.shown, sealed]);
    if (pending?.form !== form || pending.said !== said) {
      pending = { form, said, made: await ruling(shown.dataset, form.dataset.decision, comment, authority, sealed) };
    }
    const accepted = await act.send(...pending.made);
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
  if (error.field) { unfold(error.field); error.field.focus(); }
  if (error.status === 409) look(form);
}

// fresh takes over what has changed around an open form. It is false if what is
// decided has changed, too.
async function fresh(form) {
  const answer = await requests.part('part/items/' + item().dataset.id).catch(() => undefined);
  return Boolean(answer?.ok) && behind(form, answer.html);
}

// call calls a verb on the item, and shows what it changed.
export async function call(verb, request, done) {
  const id = item().dataset.id;
  try {
    await requests.post('call/escalation.' + verb, { escalationId: id, ...request });
    if (done) say(done);
  } catch (error) {
    if (error.status === 401) return toDoor();
    say(told(error));
  }
  await Promise.all([open(id, { push: false }), refreshQueue()]);
}

// sends has what each form sends that decides nothing, and the words once the broker has it.
const sends = {
  comment: [(id, { text }) => requests.post('call/escalation.comment', { escalationId: id, text: text.value.trim() }), 'Note added.'],
  pass: [(id, { to, reason }) => requests.post('call/escalation.transfer', { escalationId: id, to: to.value, reason: reason.value.trim() || undefined }), 'Handed over.'],
  unseal: [(id, _, form) => requests.unseal(id, all('[name=sealer]:checked', form).map((chosen) => chosen.value)), 'The arbiter may read it.'],
};

// note sends such a form. Its draft ends once the broker has it.
export async function note(form) {
  const submit = $('button[type=submit], button:not([type])', form);
  if (submit.disabled) return;
  if ($('[name=sealer]', form) && !$('[name=sealer]:checked', form)) return show(form, 'Choose what the arbiter is to read.');
  submit.disabled = true;
  const id = item().dataset.id;
  const [send, done] = sends[form.dataset.do];
  try {
    await send(id, form.elements, form);
    drafts.drop(form);
    form.closest('dialog')?.close();
    say(done);
    main.focus({ preventScroll: true });
    await Promise.all([open(id, { push: false }), refreshQueue()]);
  } catch (error) {
    if (error.status === 401) return toDoor();
    if ($('.refused', form)) show(form, told(error), undefined);
    else say(told(error));
  } finally {
    submit.disabled = false;
  }
}
