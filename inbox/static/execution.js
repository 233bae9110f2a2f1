// The pages of what is carried out: acts that answer a delivery, and files that are compared with evidence.

import * as clock from './clock.js';
import * as keys from './keys.js';
import * as requests from './requests.js';
import { dialogs, text, writing } from './dialogacts.js';
import { $, all, main, parsed, put, toDoor, told } from './dom.js';

const page = () => $('#execution');

// ---- acts ----

const number = (form, name) => text(form, name) && Number(text(form, name));

const types = new Map(); // media types of files, by digest

// listed are the digests of a form: each line has one, and what it is of.
function listed(form) {
  const evidence = (text(form, 'evidence') ?? '').split('\n').map((line) => line.trim()).filter(Boolean).map((line) => {
    const [, hex, note] = /^(?:sha256:)?([0-9a-f]{64})(?:\s+\*?(.*))?$/.exec(line) ?? [];
    if (!hex) throw new Error(`“${line.slice(0, 80)}” is no SHA-256 digest, which has 64 hexadecimal digits.`);
    const sum = 'sha256:' + hex;
    return { kind: text(form, 'kind') ?? 'document', digest: sum, mediaType: types.get(sum), note: note || undefined };
  });
  return evidence.length ? evidence : undefined;
}

// amended is an obligation with what the form changes.
function amended(form) {
  const terms = JSON.parse(form.dataset.promised);
  const deadline = text(form, 'deadline');
  terms.action = text(form, 'action');
  if (deadline) terms.deadline = clock.read(deadline).toISOString();
  if (form.elements.quantity) terms.quantity = number(form, 'quantity');
  if (form.elements.worth) terms.amount.value = number(form, 'worth');
  return terms;
}

// acts build what a form sends, about what its page shows.
const acts = {
  accept: (form, of) => ['ACCEPT', { referenceId: of.delivery, quantity: number(form, 'quantity') }],
  reject: (form, of) => ['REJECT', { referenceId: of.delivery, code: text(form, 'code'), reason: text(form, 'reason'), retryable: true }],
  deliver: (form, of) => ['INFORM', { type: 'result', data: {
    commitmentId: of.commitment, obligation: of.obligation, quantity: number(form, 'quantity'), evidence: listed(form),
  } }],
  waive: (form, of) => ['INFORM', { type: 'waiver', data: { commitmentId: of.commitment, obligation: of.obligation, reason: text(form, 'reason') } }],
  amend: (form, of) => ['PROPOSE', {
    proposalId: keys.newID(clock.now()), type: 'amendment', referenceId: of.commitment, subject: 'other obligations', terms: { obligations: [amended(form)] }, message: text(form, 'message'),
  }],
  take: (form) => ['ACCEPT', { referenceId: form.dataset.change }],
  decline: (form) => ['REJECT', { referenceId: form.dataset.change, code: 'unspecified', reason: text(form, 'reason'), retryable: true }],
  dispute: async (form, of) => {
    const evidence = [];
    for (const file of form.elements.files.files) {
      evidence.push({ kind: 'document', digest: await digest(file), mediaType: file.type || undefined, note: file.name });
    }
    return ['INFORM', { type: 'dispute', data: {
      disputeId: keys.newID(clock.now()), subject: of.shown, ground: text(form, 'ground'), claim: text(form, 'claim'), remedy: text(form, 'remedy'),
      severity: Number(text(form, 'severity')), evidence: evidence.length ? evidence : undefined,
    } }];
  },
  reply: (form, of) => ['INFORM', { type: 'reply', data: {
    disputeId: of.dispute, shown: of.shown, position: text(form, 'position'), comment: text(form, 'comment'), remedy: text(form, 'remedy'),
  } }],
  'take-offer': (_, of) => ['ACCEPT', { referenceId: of.offer }],
  rule: (form, of) => ['INFORM', { type: 'resolution', data: {
    disputeId: of.dispute, shown: of.shown, decision: text(form, 'decision'), reason: text(form, 'reason'), award: text(form, 'award'),
  } }],
};

const said = {
  accept: 'Accepted.', deliver: 'Reported: the other side answers.', waive: 'Waived.', amend: 'Proposed: it holds once every party has accepted.', take: 'Accepted.', decline: 'Rejected.', reject: 'Rejected: it is due again.', dispute: 'Disputed.', reply: 'Your reply was sent.', 'take-offer': 'Accepted: the dispute is over.', rule: 'Decided.',
};

const openForm = dialogs({ about: () => page().dataset, acts, said, sent: () => refresh() });

// ---- live updates ----

let stale = false; // the page has changed while a form was open

async function refresh() {
  try {
    const { ok, html } = await requests.part('part/' + page().dataset.at);
    if (!ok) return;
    if (!writing()) {
      stale = false;
      put(main, html);
      marks();
      return;
    }
    stale = true;
    const now = $('#execution', parsed(html))?.dataset ?? {};
    if (['delivery', 'offer', 'shown', 'status'].some((what) => now[what] !== page().dataset[what])) $('.refused', writing()).textContent = 'This has changed while you were writing. Close the form to see it.';
  } catch (error) {
    if (error.status === 401) toDoor();
  }
}

document.addEventListener('changed', ({ detail }) => { if (detail.reset || detail.sessions.includes(page().dataset.session)) refresh(); });
main.addEventListener('close', () => { if (stale) refresh(); }, true);

// ---- files ----

const mostBytes = 1 << 30; // a digest needs the file in memory

// digest computes the digest of a file here. Nothing of the file is sent.
async function digest(file) {
  if (!crypto.subtle) throw new Error('Digests need HTTPS, or localhost.');
  if (file.size > mostBytes) throw new Error(`${file.name} is larger than 1 GiB: use sha256sum.`);
  const bytes = await file.arrayBuffer().catch(() => { throw new Error(`The browser cannot read ${file.name}.`); });
  return 'sha256:' + [...new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))].map((b) => b.toString(16).padStart(2, '0')).join('');
}

// add computes the digests of files here, and adds a line for each to a field.
async function add(files, field) {
  const refused = $('.refused', field.form);
  refused.textContent = '';
  for (const file of files) {
    try {
      const sum = await digest(file);
      if (file.type) types.set(sum, file.type);
      field.value = [...field.value.split('\n').filter(Boolean), `${sum}  ${file.name}`].join('\n') + '\n';
    } catch (error) {
      refused.textContent = told(error);
    }
  }
}

// dropped takes files where they are of use: in the open form, as evidence to compare, or in a new report.
function dropped(files) {
  const chooser = writing() && $('input[type=file]', writing());
  if (chooser?.dataset.into) return void add(files, document.getElementById(chooser.dataset.into));
  if (chooser) return void (chooser.files = files);
  if (writing()) return;
  if ($('#drop')) return void compare(files[0]);
  openForm('deliver');
  if (writing()) add(files, $('[name=evidence]', writing()));
}

let compared; // the file that was compared last

// compare computes the digest of a file here, and marks the evidence that has it.
async function compare(file) {
  const mine = compared = { name: file.name };
  marks();
  try { mine.sum = await digest(file); } catch (error) { mine.error = told(error); }
  if (compared === mine) marks();
}

// marks shows what came of it, also on a page that is drawn again.
function marks() {
  const found = $('#compared');
  if (!found || !compared) return;
  const { name, sum, error } = compared;
  const evidence = all('[data-digest]', main);
  for (const e of evidence) $('.chip', e).hidden = e.dataset.digest !== sum;
  const same = evidence.some((e) => e.dataset.digest === sum);
  found.className = !sum ? 'verdict' : same ? 'verdict good' : 'verdict bad';
  found.textContent = error ?? (sum ? `${name} is ${same ? 'the same as' : 'none of'} the evidence: ${sum}` : 'Computing …');
}

document.addEventListener('change', ({ target }) => {
  if (target.id === 'file' && target.files[0]) compare(target.files[0]);
  if (target.dataset.into) add(target.files, document.getElementById(target.dataset.into)).then(() => { target.value = ''; });
});
const takes = () => $('#drop') || $('input[type=file]', main);
document.addEventListener('dragover', (event) => { if (takes()) event.preventDefault(); });
document.addEventListener('drop', (event) => {
  if (!takes()) return;
  event.preventDefault(); // or the browser opens the file
  if (event.dataTransfer.files[0]) dropped(event.dataTransfer.files);
});

// ---- mouse and keyboard ----

const shortcuts = {
  a: () => openForm($('[data-form=take-offer]', main) ? 'take-offer' : 'accept'), o: () => openForm('dispute'),
  r: () => openForm(['rule', 'reply', 'deliver'].find((form) => $(`[data-form=${form}]`, main))), m: () => openForm('amend'), w: () => openForm('waive'), d: () => openForm('reject'), f: () => $('#file')?.focus(),
  u: () => location.assign(new URL(page().dataset.list, requests.root)),
};

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]') || event.target.matches('input:not([type=file]), textarea, select')) return;
  const run = shortcuts[event.key];
  if (!run) return;
  event.preventDefault();
  run();
});
