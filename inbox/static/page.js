// The page: inserts parts that the server renders, follows changes, and handles keys.

import * as clock from './clock.js';
import * as keys from './keys.js';
import * as talk from './talk.js';
import * as decide from './decide.js';
import { follow } from './live.js';

const $ = (selector, below = document) => below.querySelector(selector);
const body = document.body;

// The only place that turns a string into markup: parts of pages that our server has
// rendered and escaped.
const ours = globalThis.trustedTypes?.createPolicy('parley', { createHTML: (html) => html }) ?? { createHTML: (html) => html };
function put(element, html) {
  element.innerHTML = ours.createHTML(html);
  clock.start(element);
}

let quiet;
function say(text) {
  $('#toast').textContent = text;
  clearTimeout(quiet);
  quiet = setTimeout(() => { $('#toast').textContent = ''; }, 7000);
}

// ---- signing in ----

const next = () => {
  const to = new URLSearchParams(location.search).get('next') || '';
  return new URL(/^(items|sessions)(\/[0-9a-f-]{36})?(\?[\w=&.%+-]*)?$|^\?[\w=&.%+-]*$/.test(to) ? to : './', talk.root);
};

async function door() {
  const refused = (error) => { $('#refused').textContent = error.message; };
  // Registered before the first await, so that an early submit is not lost.
  document.addEventListener('submit', async (event) => {
    event.preventDefault();
    const form = event.target;
    const button = $('button', form);
    if (button.disabled) return;
    button.disabled = true;
    $('#refused').textContent = '';
    try {
      if (form.dataset.do === 'be') await talk.be(form.elements.agent.value.trim());
      else await talk.enrol(form.elements.code.value, form.elements.name.value.trim());
      location.replace(next());
    } catch (error) {
      refused(error);
      button.disabled = false;
    }
  });
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-do=be][data-agent]');
    if (button) talk.be(button.dataset.agent).then(() => location.replace(next()), refused);
  });
  if ('dev' in body.dataset) return;
  const why = keys.impossible();
  if (why) return refused(new Error(why));
  const key = await keys.current().catch(() => undefined);
  if (!key) return;
  const enter = async () => {
    $('#known').hidden = false;
    $('#again').hidden = true;
    try {
      await talk.enter(key);
      location.replace(next());
    } catch (error) {
      $('#known').hidden = true;
      refused(error);
    }
  };
  if (!new URLSearchParams(location.search).has('out')) return enter();
  $('#again b').textContent = key.agentId;
  $('#again').hidden = false;
  $('[data-do=again]').addEventListener('click', enter);
  $('[data-do=forget]').addEventListener('click', async () => {
    await keys.forget();
    $('#again').hidden = true;
  });
}

const toDoor = () => {
  const here = location.href.slice(talk.root.href.length);
  location.assign(new URL('login?next=' + encodeURIComponent(here), talk.root));
};

// ---- the two panes ----

const panes = $('#panes');
const queue = $('#queue');
const main = $('#main');
const item = () => $('#item');
const rows = () => [...queue.querySelectorAll('.row')];
let asked = location.search; // what the queue shows

function mark() {
  const id = item()?.dataset.id;
  for (const row of rows()) row.toggleAttribute('aria-current', row.dataset.id === id);
  for (const row of rows()) if (row.dataset.id === id) row.setAttribute('aria-current', 'true');
}

function title() {
  const count = Number($('[data-open]', queue)?.dataset.open || 0);
  document.title = `${count ? `(${count}) ` : ''}${item() ? $('#item-title').textContent : 'Inbox'} · parley`;
}

let refreshing;
let once = false;
async function refreshQueue(changed = []) {
  if (!queue) return undefined;
  if (refreshing) { once = true; return refreshing.catch(() => {}); }
  refreshing = (async () => {
    const query = new URLSearchParams(asked);
    const shown = Number($('.rows', queue)?.dataset.shown || 0);
    if (shown > 60 && !query.has('limit')) query.set('limit', Math.min(1000, shown));
    const before = new Set(rows().map((row) => row.dataset.id));
    const answer = await talk.part('part/queue?' + query);
    if (!answer.ok) return;
    const at = queue.contains(document.activeElement) ? document.activeElement : null; // after the fetch: focus may have moved
    const focused = at?.closest('.row')?.dataset.id;
    const choice = at?.dataset.choice;
    const typed = at?.id === 'search' && [at.value, at.selectionStart, at.selectionEnd];
    const top = queue.scrollTop;
    put(queue, answer.html);
    queue.scrollTop = top;
    if (typed) {
      const again = $('#search');
      again.value = typed[0];
      again.focus({ preventScroll: true });
      again.setSelectionRange(typed[1], typed[2]);
    }
    if (choice) $(`[data-choice="${CSS.escape(choice)}"]`, queue)?.focus({ preventScroll: true });
    for (const row of rows()) {
      if (row.dataset.id === focused) row.focus({ preventScroll: true });
      if (changed.includes(row.dataset.id) || (before.size && !before.has(row.dataset.id) && changed.length)) row.classList.add('fresh');
    }
    mark();
    title();
  })();
  try { await refreshing; } catch (error) { if (error.status === 401) toDoor(); } finally { refreshing = undefined; }
  if (once) { once = false; await refreshQueue(changed); }
}

// remember saves the state of an item before it is re-rendered: the draft of a note,
// the focus and the open details. It returns a function that restores them.
function remember() {
  const draft = $('#comment')?.value;
  const at = main.contains(document.activeElement) ? document.activeElement : null;
  const [id, from, to] = [at?.id, at?.selectionStart, at?.selectionEnd];
  const unfolded = [...main.querySelectorAll('details')].map((d) => d.open);
  return () => {
    const note = $('#comment');
    if (draft && note) note.value = draft;
    const details = main.querySelectorAll('details');
    if (details.length === unfolded.length) details.forEach((d, i) => { d.open = unfolded[i]; });
    const again = id && document.getElementById(id);
    if (!again) return void (at && main.focus({ preventScroll: true }));
    again.focus({ preventScroll: true });
    if (again.tagName === 'TEXTAREA') again.setSelectionRange(from, to);
  };
}

let turn = 0;
let going; // the turn of an item that the user is opening
async function open(id, { push = true, focus = true, live = false } = {}) {
  if (live && going) return; // do not replace the item that the user is opening
  const mine = ++turn;
  if (!live) going = mine;
  const query = new URLSearchParams(asked);
  query.delete('limit');
  const where = 'items/' + id + (query.size ? '?' + query : '');
  let answer;
  try {
    answer = await talk.part('part/' + where);
  } catch (error) {
    if (error.status === 401) return toDoor();
    return live ? undefined : say(error.message);
  } finally {
    if (going === mine) going = undefined;
  }
  if (mine !== turn) return;
  const same = item()?.dataset.id === id;
  const writing = $('dialog[open] form', main);
  if (same && writing) { // do not replace an open form
    if (writing.dataset.decision) warn(writing, answer.html);
    return;
  }
  const restore = same ? remember() : () => {};
  const top = scrollY;
  put(main, answer.html);
  main.hidden = false;
  panes.classList.add('split');
  restore();
  if (push) history.pushState({}, '', new URL(where, talk.root));
  if (same) scrollTo(0, top);
  else { scrollTo(0, 0); rows().find((r) => r.dataset.id === id)?.scrollIntoView({ block: 'nearest' }); }
  mark();
  title();
  ready();
  if (focus && !same) main.focus({ preventScroll: true });
}

function shut({ push = true } = {}) {
  turn++;
  const id = item()?.dataset.id;
  main.replaceChildren();
  main.hidden = true;
  panes.classList.remove('split');
  if (push) history.pushState({}, '', new URL('./' + asked, talk.root));
  mark();
  title();
  (rows().find((r) => r.dataset.id === id) ?? queue).focus();
}

// ---- deciding ----

let pending; // {form, said, envelope}: sent, without a definite reply

function ready() {
  for (const form of document.querySelectorAll('form[data-decision=approved]')) {
    const bounds = $('fieldset', form);
    const set = () => { bounds.disabled = !form.elements.bounded.checked; };
    form.elements.bounded.addEventListener('change', set);
    set();
  }
}

function openForm(name) {
  const dialog = document.getElementById(name);
  if (!dialog || !$(`[data-open="${name}"]`, main) || document.querySelector('dialog[open]')) return;
  pending = undefined;
  $('.refused', dialog).textContent = '';
  dialog.showModal();
  ((name === 'modify' ? $('input, select', dialog) : $('textarea', dialog)) ?? $('select', dialog)).focus();
}

async function sign(form) {
  const refused = $('.refused', form);
  const submit = $('button[type=submit]', form);
  if (submit.disabled) return; // ignore a double click
  refused.textContent = '';
  if (!form.checkValidity()) {
    form.reportValidity();
    return;
  }
  submit.disabled = true;
  const shown = item();
  try {
    const said = JSON.stringify([...new FormData(form)]);
    if (pending?.form !== form || pending.said !== said) {
      const envelope = await decide.made(shown.dataset, form.dataset.decision, decide.comment(form), decide.authority(form));
      pending = { form, said, envelope };
    }
    const accepted = await decide.send(pending.envelope);
    pending = undefined;
    form.closest('dialog').close();
    const waits = accepted.state === 'ESCALATED';
    say(waits ? 'Signed. More approvals are needed before the session continues.' : `Signed: ${form.dataset.decision}. The session continues (${accepted.state}).`);
    await Promise.all([open(shown.dataset.id, { push: false }), refreshQueue()]);
  } catch (error) {
    if (error.status === 401) return toDoor();
    if (error.status) pending = undefined; // answered: a retry is a new act
    refused.textContent = error.message;
    if (error.status === 409) {
      const look = document.createElement('button');
      look.type = 'button';
      look.dataset.do = 'look';
      look.textContent = 'Show the current version';
      refused.append(' ', look);
    }
  } finally {
    submit.disabled = false;
  }
}

async function call(verb, request, done) {
  try {
    await talk.post('call/escalation.' + verb, { escalationId: item().dataset.id, ...request });
    if (done) say(done);
  } catch (error) {
    say(error.message);
  }
  await Promise.all([open(item().dataset.id, { push: false }), refreshQueue()]);
}

async function pass(form) {
  const to = form.elements.to.value;
  const reason = form.elements.reason.value.trim();
  const how = form.elements.how.value;
  form.closest('dialog').close();
  await call(how, how === 'assign' ? { to } : { to, reason: reason || undefined }, 'Handed over.');
}

// ---- live updates ----

function changed({ changed: ids, reset, now }) {
  if (now) clock.set(now);
  if (!reset && !ids.length) return;
  if (queue) refreshQueue(ids);
  const shown = item();
  if (!shown || !(reset || ids.includes(shown.dataset.id))) return;
  open(shown.dataset.id, { push: false, focus: false, live: true });
}

// warn says in an open form that the item has changed.
function warn(form, html) {
  const shown = item();
  if ($('button[type=submit]', form).disabled) return;
  const there = new DOMParser().parseFromString(ours.createHTML(html), 'text/html').querySelector('#item');
  if (!there || (there.dataset.revision === shown.dataset.revision && there.dataset.shown === shown.dataset.shown && there.dataset.status === shown.dataset.status)) return;
  const refused = $('.refused', form);
  refused.textContent = there.dataset.status === 'open' ? 'This item has changed while you were deciding. ' : `Already decided: ${there.dataset.status}. `;
  const look = document.createElement('button');
  look.type = 'button';
  look.dataset.do = 'look';
  look.textContent = 'Show the current version';
  refused.append(look);
}

// ---- mouse and keyboard ----

const actions = {
  help: () => $('#help').showModal(),
  close: (button) => button.closest('dialog').close(),
  leave: async () => { await talk.leave(); location.assign(new URL('login?out', talk.root)); },
  back: () => shut(),
  claim: () => call('claim', {}),
  release: () => call('release', {}),
  look: (button) => { button.closest('dialog').close(); open(item().dataset.id, { push: false }); refreshQueue(); },
};

function clicked(event) {
  if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const on = event.target.closest('a, button');
  if (!on) return;
  if (on.dataset.open) return openForm(on.dataset.open);
  if (on.dataset.do && actions[on.dataset.do]) {
    event.preventDefault();
    return void actions[on.dataset.do](on);
  }
  if (!panes || on.tagName !== 'A') return;
  if (on.classList.contains('row')) {
    event.preventDefault();
    open(on.dataset.id);
  } else if (on.matches('[data-filter], [data-more]')) {
    event.preventDefault();
    asks(new URL(on.href).search);
  }
}

// asks changes the query of the queue.
function asks(query) {
  if (asked === query) return;
  asked = query;
  $('.rows', queue)?.removeAttribute('data-shown'); // the query sets the limit
  const at = item() ? 'items/' + item().dataset.id : './';
  history.replaceState({}, '', new URL(at + asked, talk.root));
  refreshQueue();
}

let typing;
function search(field, wait) {
  clearTimeout(typing);
  typing = setTimeout(() => {
    const query = new URLSearchParams(asked);
    query.delete('cursor');
    query.delete('limit');
    const text = field.value.trim();
    if (text) query.set('search', text);
    else query.delete('search');
    asks(query.size ? '?' + query : '');
  }, wait);
}

function submitted(event) {
  const form = event.target;
  event.preventDefault();
  if (form.role === 'search') search(form.elements.search, 0);
  else if (form.dataset.decision) sign(form);
  else if (form.dataset.do === 'pass') pass(form);
  else if (form.dataset.do === 'comment') {
    const text = form.elements.text.value.trim();
    form.elements.text.value = '';
    main.focus({ preventScroll: true });
    call('comment', { text }, 'Note added.');
  }
}

function step(by) {
  const all = rows();
  if (!all.length) return;
  const id = document.activeElement?.closest('.row')?.dataset.id ?? item()?.dataset.id;
  const at = all.findIndex((row) => row.dataset.id === id);
  const to = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))];
  if (item() && getComputedStyle(queue).display === 'none') return void open(to.dataset.id);
  to.focus();
  to.scrollIntoView({ block: 'nearest' });
  if (item()) open(to.dataset.id, { focus: false });
}

const shortcuts = {
  j: () => step(1), k: () => step(-1),
  a: () => openForm('approve'), m: () => openForm('modify'), d: () => openForm('deny'), g: () => openForm('guidance'),
  c: () => $('#comment')?.focus(),
  x: () => $('[data-do=claim], [data-do=release]', main)?.click(),
  u: () => item() && shut(),
  '/': () => $('#search')?.focus(),
  '?': () => $('#help').showModal(),
};

function pressed(event) {
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
  document.addEventListener('click', clicked);
  document.addEventListener('keydown', pressed);
  document.addEventListener('submit', submitted);
  document.addEventListener('input', ({ target }) => { if (target.id === 'search') search(target, 250); });
  ready();
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
    addEventListener('popstate', () => {
      const id = /items\/([0-9a-f-]{36})/.exec(location.pathname)?.[1];
      asked = location.search;
      if (id) open(id, { push: false });
      else shut({ push: false });
      refreshQueue();
    });
  }
}
