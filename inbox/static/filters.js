// Saved filters: links above the queue, kept in this browser.

import { $, queue } from './dom.js';
import { most, save, saved } from './preferences.js';

// filterOf is a query without the page that it shows.
function filterOf(search) {
  const query = new URLSearchParams(search);
  for (const name of ['cursor', 'limit']) query.delete(name);
  return query.toString();
}

// draw puts the saved filters above the queue, and offers to save the one in use.
export function draw(search) {
  const place = $('#saved', queue);
  if (!place) return;
  const now = filterOf(search);
  const list = saved();
  const links = list.map(({ name, query }) => {
    const link = document.createElement('a');
    link.href = './?' + query;
    link.textContent = name;
    link.dataset.filter = '';
    link.dataset.choice = 'saved ' + name;
    if (query === now) link.setAttribute('aria-current', 'true');
    return link;
  });
  place.replaceChildren(...links);
  place.hidden = !list.length;
  const known = list.some(({ query }) => query === now);
  $('#save', queue).hidden = !now || known || list.length >= most;
  $('#forget', queue).hidden = !known;
}

export function forget(search) {
  const now = filterOf(search);
  save(saved().filter(({ query }) => query !== now));
  draw(search);
  $('#save', queue).focus();
}

// keep saves the filter in use under the name in a form.
export function keep(form, search) {
  const name = form.elements.name.value.trim();
  if (!name) return form.reportValidity();
  save([...saved().filter((f) => f.name !== name), { name, query: filterOf(search) }]);
  form.reset();
  form.closest('dialog').close();
  draw(search);
  $('#forget', queue).focus();
}
