// The two panes: the queue, and the item beside it.

import { $, all, item, main, panes, put, queue, released, rows, say, toDoor, told } from './dom.js';
import * as filters from './filters.js';
import * as picks from './picks.js';
import * as requests from './requests.js';
import { behind, ready, writing } from './dialogs.js';

let asked = location.search; // what the queue shows
let place = []; // the ids of the queue around the item, for when it leaves the queue

const indexOf = (id) => rows().findIndex((row) => row.dataset.id === id);

function mark() {
  const id = item()?.dataset.id;
  for (const row of rows()) {
    if (row.dataset.id === id) row.setAttribute('aria-current', 'true');
    else row.removeAttribute('aria-current');
  }
  if (indexOf(id) >= 0) place = rows().map((row) => row.dataset.id);
}

export function title() {
  const count = Number($('[data-open]', queue)?.dataset.open || 0);
  document.title = `${count ? `(${count}) ` : ''}${item() ? $('#item-title').textContent : 'Inbox'} · parley`;
}

let refreshing;
let once = false;
export async function refreshQueue(changed = []) {
  if (!queue) return undefined;
  if (refreshing) { once = true; return refreshing.catch(() => {}); }
  refreshing = (async () => {
    const query = new URLSearchParams(asked);
    const shown = Number($('.rows', queue)?.dataset.shown || 0);
    if (shown > 60 && !query.has('limit')) query.set('limit', Math.min(1000, shown));
    const before = new Set(rows().map((row) => row.dataset.id));
    const answer = await requests.part('part/queue?' + query);
    if (!answer.ok) throw new Error('The list cannot be loaded now. Try again.');
    await released();
    const at = queue.contains(document.activeElement) ? document.activeElement : null; // after the fetch: focus may have moved
    const focused = at?.closest('.row')?.dataset.id;
    const choice = at?.dataset.choice;
    const typed = at?.id === 'search' && [at.value, at.selectionStart, at.selectionEnd];
    const top = queue.scrollTop;
    const half = at?.matches('.narrow input') && at.closest('.narrow'); // being filled in
    put(queue, answer.html);
    filters.draw(asked);
    picks.draw();
    if (half) {
      $('.narrow', queue)?.replaceWith(half);
      at.focus({ preventScroll: true });
    }
    queue.scrollTop = top;
    if (typed) {
      const again = $('#search');
      again.value = typed[0];
      again.focus({ preventScroll: true });
      again.setSelectionRange(typed[1], typed[2]);
    }
    if (choice && !half) $(`[data-choice="${CSS.escape(choice)}"]`, queue)?.focus({ preventScroll: true });
    for (const row of rows()) {
      if (row.dataset.id === focused) row.focus({ preventScroll: true });
      if (changed.includes(row.dataset.id) || (before.size && !before.has(row.dataset.id) && changed.length)) row.classList.add('fresh');
    }
    mark();
    title();
  })();
  try { await refreshing; } catch (error) { if (error.status === 401) toDoor(); else say(told(error)); } finally { refreshing = undefined; }
  if (once) { once = false; await refreshQueue(changed); }
}

// remember saves the state of an item before it is rendered anew: the focus and the
// open details. It returns a function that restores them.
function remember() {
  const at = main.contains(document.activeElement) ? document.activeElement : null;
  const [id, from, to] = [at?.id, at?.selectionStart, at?.selectionEnd];
  const unfolded = all('details', main).map((d) => d.open);
  return () => {
    const details = all('details', main);
    if (details.length === unfolded.length) details.forEach((d, i) => { d.open = unfolded[i]; });
    const again = id && document.getElementById(id);
    if (!again) return void (at && main.focus({ preventScroll: true }));
    again.focus({ preventScroll: true });
    if (again.tagName === 'TEXTAREA') again.setSelectionRange(from, to);
  };
}

let turn = 0;
let going; // the turn of an item that the user is opening
export async function open(id, { push = true, focus = true, live = false } = {}) {
  if (live && going) return; // do not replace the item that the user is opening
  const mine = ++turn;
  if (!live) going = mine;
  const query = new URLSearchParams(asked);
  query.delete('limit');
  const where = 'items/' + id + (query.size ? '?' + query : '');
  let answer;
  try {
    answer = await requests.part('part/' + where);
    if (live) await released();
  } catch (error) {
    if (error.status === 401) return toDoor();
    return live ? undefined : say(told(error));
  } finally {
    if (going === mine) going = undefined;
  }
  if (mine !== turn) return;
  const same = item()?.dataset.id === id;
  if (same && writing()) return void behind(writing(), answer.html); // do not replace an open form
  const restore = same ? remember() : () => {};
  const held = same && item().dataset.claim === 'mine';
  const top = scrollY;
  put(main, answer.html);
  main.hidden = false;
  panes.classList.add('split');
  queue.removeAttribute('role');
  ready();
  restore();
  if (held && item().dataset.claim === 'colleague') say('A colleague has taken over your claim.');
  if (push) history.pushState({}, '', new URL(where, requests.root));
  if (same) scrollTo(0, top);
  else { scrollTo(0, 0); rows().find((r) => r.dataset.id === id)?.scrollIntoView({ block: 'nearest' }); }
  mark();
  title();
  if (focus && !same) main.focus({ preventScroll: true });
}

export function shut({ push = true } = {}) {
  turn++;
  const id = item()?.dataset.id;
  main.replaceChildren();
  main.hidden = true;
  panes.classList.remove('split');
  queue.setAttribute('role', 'main');
  if (push) history.pushState({}, '', new URL('./' + asked, requests.root));
  mark();
  title();
  (rows().find((r) => r.dataset.id === id) ?? queue).focus();
}

// asks changes the query of the queue.
export function asks(query) {
  asked = query;
  $('.rows', queue)?.removeAttribute('data-shown'); // the query sets the limit
  const at = item() ? 'items/' + item().dataset.id : './';
  history.replaceState({}, '', new URL(at + asked, requests.root));
  refreshQueue();
}

let typing;
export function search(field, wait) {
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

// neighbour is the row before or after an item, also of one that has left the queue.
function neighbour(id, by) {
  const list = rows();
  const at = indexOf(id);
  if (at >= 0) return list[Math.max(0, Math.min(list.length - 1, at + by))];
  const was = place.indexOf(id);
  if (was < 0) return list[0];
  const order = by > 0 ? place.slice(was + 1) : place.slice(0, was).reverse();
  return list[indexOf(order.find((other) => indexOf(other) >= 0))] ?? (by > 0 ? list.at(-1) : list[0]);
}

export function step(by) {
  const due = item() ? [] : all('#due-now .row');
  if (due.length) {
    const list = [...due, ...rows()];
    const at = list.indexOf(document.activeElement);
    const to = list[at < 0 ? 0 : Math.max(0, Math.min(list.length - 1, at + by))];
    to.focus();
    return void to.scrollIntoView({ block: 'nearest' });
  }
  if (!rows().length) return;
  const id = document.activeElement?.closest('.row')?.dataset.id ?? item()?.dataset.id;
  const to = neighbour(id, by);
  if (item() && getComputedStyle(queue).display === 'none') return void open(to.dataset.id);
  to.focus();
  to.scrollIntoView({ block: 'nearest' });
  if (item()) open(to.dataset.id, { focus: false });
}

// decided offers the next item of the queue once this one is decided.
export function decided() {
  const id = item()?.dataset.id;
  if (indexOf(id) >= 0 || !rows().length) return;
  const next = neighbour(id, 1);
  const button = document.createElement('button');
  button.type = 'button';
  button.dataset.next = next.dataset.id;
  button.textContent = `Next: ${$('.what b', next).textContent}`;
  $('.notice', item())?.append(button);
  if (!queue.contains(document.activeElement)) button.focus({ preventScroll: true }); // the user has gone on
}

// moved follows the browser's history.
export function moved() {
  const id = /items\/([0-9a-f-]{36})/.exec(location.pathname)?.[1];
  asked = location.search;
  if (id) open(id, { push: false });
  else shut({ push: false });
  refreshQueue();
}

// current is the query of the queue.
export const current = () => asked;

if (panes) {
  mark();
  picks.draw();
  filters.draw(asked);
}
