// The open forms of an item, while the item behind them changes.

import { $, all, item, main, parsed } from './dom.js';
import * as bounds from './bounds.js';
import * as clock from './clock.js';
import * as drafts from './drafts.js';

export const writing = () => $('dialog[open] form', main);

// ready prepares the forms of an item that was just inserted.
export function ready() {
  drafts.restore();
  for (const form of all('form[data-decision=approved]', main)) bounds.extent(form);
}

// show puts news and a refusal into an open form.
export function show(form, refused, news) {
  if (refused !== undefined && $('.refused', form)) $('.refused', form).textContent = refused;
  if (news !== undefined && $('.news', form)) $('.news', form).textContent = news;
}

// look offers the current version of what an open form is about.
export function look(form) {
  const button = document.createElement('button');
  button.type = 'button';
  button.dataset.do = 'look';
  button.textContent = 'Show the current version';
  $('.refused', form).append(' ', button);
}

// behind shows, in an open form, what has changed on the item behind it. Where that is
// around the decision, such as a note, the form stays as it is and can be signed.
export function behind(form, html) {
  const shown = item();
  const there = $('#item', parsed(html));
  if (!there || there.dataset.shown === shown.dataset.shown && there.dataset.status === shown.dataset.status && there.dataset.claim === shown.dataset.claim) return true;
  if (there.dataset.matter !== shown.dataset.matter) {
    if ($('button[type=submit]', form)?.disabled) return false;
    form.dataset.stale = 'yes';
    show(form, there.dataset.status === 'open' ? 'This item has changed while you were deciding.' : `Already decided: ${there.dataset.status}.`, '');
    look(form);
    return false;
  }
  const known = new Set(all('.colleagues .notes li', shown).map((li) => li.textContent));
  const notes = all('.colleagues .notes li', there).filter((li) => !known.has(li.textContent));
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
