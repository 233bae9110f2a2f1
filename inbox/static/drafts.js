// Drafts of notes and forms. They survive failures, other items, reloads and live
// updates, for as long as the tab is open, and end with what was sent or the sign-out.

import { $, all, body, item } from './dom.js';

const prefix = 'parley-draft ';
const keyOf = (form) => `${prefix}${body.dataset.me} ${item()?.dataset.id} ${form.dataset.decision ?? form.dataset.do}`;
const controls = (form) => all('input[id], textarea[id], select[id]', form);

const initial = (c) => (c.tagName === 'SELECT' ? [...c.options].findIndex((o) => o.defaultSelected) : c.defaultValue);
const touched = (c) => {
  if (c.type === 'radio' || c.type === 'checkbox') return c.checked !== c.defaultChecked;
  if (c.tagName === 'SELECT') return c.selectedIndex !== Math.max(0, initial(c));
  return c.value !== initial(c);
};
const value = (c) => (c.type === 'radio' || c.type === 'checkbox' ? c.checked : c.value);

export function save(form) {
  if (!item()?.contains(form)) return;
  const draft = Object.fromEntries(controls(form).filter(touched).map((c) => [c.id, value(c)]));
  try {
    if (Object.keys(draft).length) sessionStorage.setItem(keyOf(form), JSON.stringify(draft));
    else sessionStorage.removeItem(keyOf(form));
  } catch { /* the browser stores nothing: the form itself still has it */ }
}

export function drop(form) {
  sessionStorage.removeItem(keyOf(form));
  form.reset();
}

// restore puts the drafts of the item that is shown into its forms.
export function restore() {
  for (const form of all('form', item() ?? undefined)) {
    const draft = JSON.parse(sessionStorage.getItem(keyOf(form)) ?? '{}');
    for (const [id, was] of Object.entries(draft)) {
      const c = $('#' + CSS.escape(id), form);
      if (!c) continue;
      if (typeof was === 'boolean') c.checked = was;
      else c.value = was;
    }
  }
}

export function dropAll() {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(prefix)) sessionStorage.removeItem(key);
}
