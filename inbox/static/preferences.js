// What the human has chosen for this browser. It stays here.

const name = 'parley-preferences ' + (document.body.dataset.me ?? '');
// The time zone, '' for the browser's; the minutes without input after which the page
// locks, 0 for never; desktop notifications, and a sound with them.
const defaults = { zone: '', idle: 15, notify: false, sound: false };

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

addEventListener('storage', ({ key }) => { if (key === name) Object.assign(chosen, stored(name, {})); }); // in another tab

// ---- saved filters of the queue ----

const filters = 'parley-filters ' + (document.body.dataset.me ?? '');

export const most = 20; // saved filters

// saved returns [{name, query}].
export const saved = () => stored(filters, []);
export const save = (list) => localStorage.setItem(filters, JSON.stringify(list));
