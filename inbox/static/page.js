// The page: wires live updates, the mouse and the keyboard.

import * as clock from './clock.js';
import * as amounts from './amounts.js';
import * as bounds from './bounds.js';
import * as drafts from './drafts.js';
import * as finder from './finder.js';
import * as filters from './filters.js';
import * as requests from './requests.js';
import { $, all, body, item, main, panes, put, queue, rows, toDoor, told } from './dom.js';
import { door } from './door.js';
import { ready } from './dialogs.js';
import { call, note, openForm, sign } from './forms.js';
import { watch } from './idle.js';
import { follow } from './live.js';
import './menu.js';
import * as picks from './picks.js';
import * as several from './several.js';
import * as notices from './notices.js';
import { asks, current, moved, open, refreshQueue, search, shut, step } from './panes.js';

function changed({ changed: ids, sessions = [], reset, now }, holds) {
  if (now) clock.set(now);
  if (holds && ids.length) notices.news(ids);
  if (reset || sessions.length) document.dispatchEvent(new CustomEvent('changed', { detail: { sessions, reset } }));
  if (!reset && !ids.length) return;
  if (queue) refreshQueue(ids);
  const shown = item();
  if (!shown || !(reset || ids.includes(shown.dataset.id))) return;
  open(shown.dataset.id, { push: false, focus: false, live: true });
}

// verify has the server verify a transcript.
async function verify(button) {
  const found = button.nextElementSibling;
  button.disabled = true;
  found.textContent = 'Verifying …';
  try {
    const { entries, faults, count } = await requests.post(`verify/${button.dataset.session}`, {});
    found.textContent = count
      ? `Not genuine: ${count} ${count === 1 ? 'fault' : 'faults'} in ${entries} entries. ${faults.join('; ')}`
      : `Genuine: all ${entries} entries, their order, the receipts and the signatures are right.`;
    found.className = count ? 'verdict bad' : 'verdict good';
  } catch (error) {
    if (error.status === 401) return toDoor();
    found.textContent = told(error);
  } finally {
    button.disabled = false;
  }
}

const actions = {
  find: () => finder.show(),
  help: () => $('#help').showModal(),
  close: (button) => button.closest('dialog').close(),
  leave: async () => { drafts.dropAll(); await requests.leave(); location.assign(new URL('login?out', requests.root)); },
  back: () => shut(),
  print: () => {
    const folded = all('details:not([open])', main);
    for (const d of folded) d.open = true; // paper cannot be unfolded
    print();
    for (const d of folded) d.open = false;
  },
  verify,
  'save-filter': () => $('#save-filter').showModal(),
  'pass-several': () => several.ask('pass'),
  'deny-several': () => several.ask('deny'),
  'pick-none': () => { picks.clear(); (rows()[0] ?? queue).focus(); },
  'forget-filter': () => filters.forget(current()),
  claim: () => call('claim', {}),
  'take-over': () => call('claim', { takeOver: true }, 'You have taken over the claim. Your colleague sees that.'),
  release: () => call('release', {}),
  'pass-on': (button) => { button.closest('dialog').close(); openForm('pass'); },
  look: (button) => { button.closest('dialog').close(); open(item().dataset.id, { push: false }); refreshQueue(); },
};

function clicked(event) {
  if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const on = event.target.closest('a, button');
  if (!on) return;
  if (on.dataset.open) return openForm(on.dataset.open);
  if (on.dataset.next) return void open(on.dataset.next);
  if (on.dataset.do && actions[on.dataset.do]) {
    event.preventDefault();
    return void actions[on.dataset.do](on);
  }
  if (!panes || on.tagName !== 'A') return;
  if (on.classList.contains('row') && on.dataset.id) {
    event.preventDefault();
    open(on.dataset.id);
  } else if (on.matches('[data-filter], [data-more]')) {
    event.preventDefault();
    asks(new URL(on.href).search);
  }
}

function submitted(event) {
  const form = event.target;
  if (!panes && form.method === 'get') return; // the browser goes there, or agents.js has it
  event.preventDefault();
  if (form.role === 'search') search(form.elements.search, 0);
  else if (form.dataset.do === 'narrow') narrow(form);
  else if (form.dataset.do === 'keep-filter') filters.keep(form, current());
  else if (form.dataset.do === 'several') several.send(form);
  else if (form.dataset.decision) sign(form);
  else if (form.dataset.do) note(form);
}

// narrow asks for what was decided with the filters of a form. Its days are the reader's.
function narrow(form) {
  form.elements.zone.value = clock.zone();
  const query = [...new FormData(form)].filter(([, value]) => value.trim());
  asks('?' + new URLSearchParams(query));
}

function written({ target }) {
  if (target.id === 'search') return search(target, 250);
  if (!target.form) return;
  bounds.choose(target);
  amounts.typed(target);
  if ('reason' in target.dataset && target.value) target.form.elements.comment.value = target.value;
  if (target.name === 'extent') bounds.extent(target.form);
  bounds.free(target.form);
  drafts.save(target.form);
}

const shortcuts = {
  j: () => step(1), k: () => step(-1),
  a: () => openForm('approve'), m: () => openForm('modify'), d: () => (item() ? openForm('deny') : several.ask('deny')), g: () => openForm('guidance'),
  c: () => $('#comment')?.focus(),
  o: () => openForm('unseal'),
  x: () => $('[data-do=claim], [data-do=release], [data-do=take-over]', main)?.click(),
  s: () => picks.toggle(), h: () => several.ask('pass'),
  u: () => item() && shut(),
  '/': () => $('#search')?.focus(),
  '?': () => $('#help').showModal(),
};

function pressed(event) {
  if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
    event.preventDefault();
    return finder.show();
  }
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
    const form = event.target.closest('form');
    if (form) { event.preventDefault(); form.requestSubmit(); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  if (event.target.matches('input, textarea, select')) {
    if (event.key === 'Escape') {
      event.preventDefault(); // or the browser clears the search
      event.target.blur();
    }
    return;
  }
  const act = shortcuts[event.key];
  if (act && (panes || event.key === '?')) {
    event.preventDefault();
    act();
  }
}

clock.set(body.dataset.now);
clock.start(document);
if (body.dataset.page === 'login') {
  door();
} else {
  watch();
  document.addEventListener('click', clicked);
  document.addEventListener('keydown', pressed);
  document.addEventListener('submit', submitted);
  document.addEventListener('input', written);
  document.addEventListener('change', ({ target }) => { if (target.dataset.pick) picks.pick(target.dataset.pick, target.checked); });
  if (item()) ready();
  finder.start((name) => actions[name]());
  const sign = $('#live');
  let losing;
  follow(changed, (live, refused) => {
    if (refused) refreshQueue(); // which shows the refusal
    clearTimeout(losing);
    if (!sign || sign.dataset.live === live) return;
    losing = setTimeout(() => { // do not flicker on a short reconnect
      sign.dataset.live = live;
      $('span', sign).textContent = live === 'yes' ? 'live' : 'not live: reconnecting';
    }, live === 'yes' ? 0 : 1500);
  });
  if (panes) {
    addEventListener('popstate', moved);
    requests.part('part/due').then(({ ok, html }) => { if (ok) put($('#due-now'), html); }, () => {}); // it is a hint
  }
}
