// What the human has chosen for this browser. It stays here.

const name = 'parley-preferences ' + (document.body.dataset.me ?? '');
const defaults = { zone: '' }; // zone '' is the browser's

function stored(key, none) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? none;
  } catch {
    return none; // the browser stores nothing, or something else wrote it
  }
}

export const chosen = { ...defaults, ...stored(name, {}) };

export function choose(change) {
  Object.assign(chosen, change);
  localStorage.setItem(name, JSON.stringify(chosen));
}

// ---- saved filters of the queue ----

const filters = 'parley-filters ' + (document.body.dataset.me ?? '');

export const most = 20; // saved filters

// saved returns [{name, query}].
export const saved = () => stored(filters, []);
export const save = (list) => localStorage.setItem(filters, JSON.stringify(list));
