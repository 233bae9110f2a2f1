// The pages of checks: what an agent delegates to the human, and the forms that answer.

import { exactly } from './amounts.js';
import * as clock from './clock.js';
import * as keys from './keys.js';
import * as menu from './menu.js';
import * as requests from './requests.js';
import { dialogs, text, writing } from './dialogacts.js';
import { $, all, main, parsed, put, toDoor } from './dom.js';

const check = () => $('#check');

// ---- acts ----

const lines = (s) => (s ?? '').split('\n').map((line) => line.trim()).filter(Boolean);
const id = () => keys.newID(clock.now());

// terms returns the terms of an offer with what the form's fields say, and what somebody should look at first.
async function terms(form) {
  const offer = JSON.parse(form.dataset.terms);
  const fields = new Map(all('[data-path]', form).map((f) => [JSON.parse(f.dataset.path), f]));
  const doubts = [];
  const read = async (f) => {
    if (f.dataset.type === 'json') return JSON.parse(f.value);
    if (f.dataset.type !== 'number') return f.value;
    const now = await exactly(f);
    doubts.push(...now.doubts);
    return now.value;
  };
  const walk = async (object, path) => {
    for (const [name, value] of Object.entries(object)) {
      const at = `${path}.${name}`;
      const field = fields.get(at);
      if (field && field.value !== field.defaultValue) object[name] = await read(field);
      else if (value && typeof value === 'object' && !Array.isArray(value)) await walk(value, at);
    }
  };
  await walk(offer, 'terms');
  if (doubts.length && form.dataset.warned !== doubts.join()) {
    form.dataset.warned = doubts.join();
    throw new Error(doubts.join(' ') + ' Sign again to confirm.');
  }
  return offer;
}

// acts build what a form sends, about what its page shows.
const acts = {
  join: (_, of) => ['ACCEPT', { referenceId: of.delegation }],
  decline: (form, of) => ['REJECT', { referenceId: of.delegation, code: 'unspecified', reason: text(form, 'reason') ?? 'declined', retryable: false }],
  leave: (form, of) => ['WITHDRAW', { referenceId: of.delegation, reason: text(form, 'reason') }],
  answer: (form, of) => ['INFORM', { type: 'result', data: {
    assessment: text(form, 'assessment'), details: text(form, 'details') ?? '', conditions: lines(text(form, 'conditions')), referenceId: of.offer || undefined,
  } }],
  ask: (form, of) => (text(form, 'field')
    ? ['CLARIFY', { referenceId: of.offer, questions: [{ field: text(form, 'field'), question: text(form, 'question') }] }]
    : ['QUERY', { queryId: id(), queryType: 'check', subject: text(form, 'question') }]),
  accept: (form, of) => ['ACCEPT', { referenceId: of.offer, reason: text(form, 'reason') }],
  reject: (form, of) => ['REJECT', { referenceId: of.offer, code: text(form, 'code'), reason: text(form, 'reason'), retryable: form.elements.retryable.checked }],
  counter: async (form, of) => ['COUNTER', { proposalId: id(), referenceId: of.offer, terms: await terms(form), reason: text(form, 'reason') }],
  escalate: (form, of) => ['ESCALATE', { reason: text(form, 'reason'), urgency: text(form, 'urgency'), context: text(form, 'context'), referenceId: of.offer || undefined }],
  pass: (form) => ['DELEGATE', { targetAgent: text(form, 'to'), scope: text(form, 'scope'), authority: text(form, 'authority'), protocol: 'asp' }],
};

const said = {
  join: 'You have joined.', decline: 'Declined.', leave: 'You have left.', answer: 'Your result was sent.', ask: 'Your question was sent.',
  accept: 'Accepted.', reject: 'Rejected.', counter: 'Your offer was made.', escalate: 'Escalated: the session is paused.', pass: 'Handed over.',
};

const openForm = dialogs({ about: () => check().dataset, acts, said, sent: async (kind) => {
  tell.postMessage(check().dataset.session);
  if (kind === 'decline') return void location.assign(new URL('checks', requests.root));
  menu.refresh();
  await refresh();
} });

// ---- live updates ----

const tell = new BroadcastChannel('parley-checks ' + requests.root.pathname + document.body.dataset.me); // one's own acts, to other tabs

let stale = false; // the page has changed while a form was open
let refreshing;
let again = false;
async function refresh() {
  if (refreshing) { again = true; return refreshing; }
  refreshing = (async () => {
    do {
      again = false;
      const path = check() ? 'checks/' + check().dataset.session : 'checks' + location.search;
      const answer = await requests.part('part/' + path);
      if (!answer.ok && !check()) return;
      if (writing()) warn(writing(), answer.html);
      else show(answer.html);
    } while (again);
  })();
  try {
    await refreshing;
  } catch (error) {
    if (error.status === 401) toDoor();
  } finally {
    refreshing = undefined;
  }
}

// show replaces the page, and keeps focus, drafts and what is unfolded.
function show(html) {
  stale = false;
  const drafts = all('input[id], textarea[id], select[id]', main).map((f) => [f.id, f.type === 'checkbox' ? f.checked : f.value]);
  const at = main.contains(document.activeElement) ? document.activeElement : null;
  const focused = at?.id ? '#' + CSS.escape(at.id) : at?.dataset.form ? `[data-form="${at.dataset.form}"]` : at?.dataset.check ? `[data-check="${at.dataset.check}"]` : '';
  const open = all('details', main).map((d) => d.open);
  const top = scrollY;
  const offer = check()?.dataset.offer;
  put(main, html);
  const details = all('details', main);
  if (details.length === open.length) details.forEach((d, n) => { d.open = open[n]; });
  if (check()?.dataset.offer === offer) {
    for (const [name, value] of drafts) {
      const field = document.getElementById(name);
      if (!field) continue;
      if (field.type === 'checkbox') field.checked = value;
      else field.value = value;
    }
  }
  if (at) ((focused && $(focused, main)) || main).focus({ preventScroll: true });
  scrollTo(0, top);
}

// warn says in an open form that what it is about has changed.
function warn(form, html) {
  stale = true;
  const now = $('#check', parsed(html));
  const before = check()?.dataset;
  if (!now || !before) return;
  if (now.dataset.offer !== before.offer) $('.refused', form).textContent = 'Another offer was made while you were writing. Close the form to see it.';
  else if (now.dataset.status !== before.status) $('.refused', form).textContent = `The delegation is ${now.dataset.status} now.`;
}

const concerns = (sessions) => !check() || sessions.includes(check().dataset.session);

document.addEventListener('changed', ({ detail }) => { if (detail.reset || concerns(detail.sessions)) refresh(); });
tell.onmessage = ({ data }) => { menu.refresh(); if (concerns([data])) refresh(); };
document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); }); // a time may have passed
main.addEventListener('close', () => { if (stale) refresh(); }, true);

// ---- mouse and keyboard ----

function step(by) {
  const rows = all('[data-check]', main);
  const at = rows.indexOf(document.activeElement);
  rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.focus();
}

const shortcuts = {
  j: () => step(1), k: () => step(-1),
  i: () => openForm('join'), r: () => openForm('answer'), q: () => openForm('ask'), a: () => openForm('accept'),
  m: () => openForm('counter'), d: () => openForm($('[data-form=decline]', main) ? 'decline' : 'reject'), e: () => openForm('escalate'), h: () => openForm('pass'),
  u: () => check() && location.assign(new URL('checks', requests.root)),
};

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]') || event.target.matches('input, textarea, select')) return;
  const run = shortcuts[event.key];
  if (!run) return;
  event.preventDefault();
  run();
});
