// Ctrl-K: finds everything that the human may see, and the common actions.

import { $, all, put, toDoor, told } from './dom.js';
import * as requests from './requests.js';

const dialog = $('#finder');
const field = $('#finder-text');
const list = $('#finder-list');
let run; // does what a result names
let pause;
let asking = false;
let again = false;
let shown; // the text that the list is for
let entered = false; // Enter came before the list was

const options = () => all('[role=option]', list);
const chosen = () => $('[aria-selected=true]', list);

function choose(option) {
  chosen()?.setAttribute('aria-selected', 'false');
  if (!option) return field.removeAttribute('aria-activedescendant');
  option.setAttribute('aria-selected', 'true');
  field.setAttribute('aria-activedescendant', option.id);
  option.scrollIntoView({ block: 'nearest' });
}

// find shows what the text finds. It asks for nothing before the last answer has come. Where that fails, it says so,
// and asks again after a second.
async function find() {
  clearTimeout(pause);
  again = asking;
  if (asking) return;
  asking = true;
  do {
    again = false;
    const search = field.value;
    try {
      const { ok, html } = await requests.part('part/find?' + new URLSearchParams({ search }));
      if (again) continue;
      put(list, html);
      shown = ok ? search : undefined;
    } catch (error) {
      if (error.status === 401) toDoor();
      list.textContent = told(error);
      shown = undefined;
    }
  } while (again);
  asking = false;
  list.ariaBusy = shown !== field.value;
  $('#finder-count').textContent = $('[data-found]', list)?.dataset.found ?? list.textContent;
  choose(options()[0]);
  if (!dialog.open) entered = false;
  else if (shown === undefined) pause = setTimeout(find, 1000);
  else if (entered && shown === field.value) go(chosen());
}

function go(option) {
  entered = false;
  if (!option) return;
  dialog.close();
  if (option.dataset.run) run(option.dataset.run);
  else location.assign(new URL(option.dataset.href, requests.root));
}

export function show() {
  if (document.querySelector('dialog[open]')) return;
  dialog.showModal();
  field.select();
  find();
}

// start wires the dialog; perform does one of the page's actions.
export function start(perform) {
  run = perform;
  field.addEventListener('input', (event) => {
    event.stopPropagation(); // it is no draft
    entered = false;
    list.ariaBusy = true;
    clearTimeout(pause);
    pause = setTimeout(find, 120);
  });
  field.addEventListener('keydown', (event) => {
    const rows = options();
    const at = rows.indexOf(chosen());
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (event.key === 'Escape') dialog.close(); // a search field would only be emptied
    else if (event.key === 'Enter' && shown !== field.value) {
      entered = true;
      find();
    } else if (event.key === 'Enter') go(chosen());
    else if (to !== undefined && rows.length) choose(rows[(to + rows.length) % rows.length]);
    else return;
    event.preventDefault();
  });
  list.addEventListener('click', ({ target }) => go(target.closest('[role=option]')));
}
