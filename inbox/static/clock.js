// Times on the page: time left, age, and dates in the reader's time zone, by the
// server's clock.

let ahead = 0; // ms that the server's clock is ahead of this machine's

export function set(serverTime) {
  const at = Date.parse(serverTime);
  if (at) ahead = at - Date.now();
}

export const now = () => Date.now() + ahead;

const two = (n) => String(n).padStart(2, '0');

export function span(ms) {
  const sign = ms < 0 ? '−' : '';
  const s = Math.floor(Math.abs(ms) / 1000);
  if (s < 3600) return `${sign}${Math.floor(s / 60)}m ${two(s % 60)}s`;
  if (s < 86400) return `${sign}${Math.floor(s / 3600)}h ${two(Math.floor(s / 60) % 60)}m`;
  return `${sign}${Math.floor(s / 86400)}d ${two(Math.floor(s / 3600) % 24)}h`;
}

function age(ms) {
  if (ms < 60e3) return 'now';
  if (ms < 3600e3) return `${Math.floor(ms / 60e3)}m`;
  if (ms < 48 * 3600e3) return `${Math.floor(ms / 3600e3)}h`;
  return `${Math.floor(ms / 86400e3)}d`;
}

const today = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const other = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });

function put(element, text) {
  const last = element.lastChild;
  if (last && last.nodeType === Node.TEXT_NODE) {
    if (last.data !== text) last.data = text;
  } else {
    element.append(text);
  }
}

const soon = 15 * 60e3;

// seen holds the elements on screen. Only those are updated, because there may be
// thousands.
const seen = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const e of entries) {
    if (!e.isIntersecting) seen.delete(e.target);
    else { seen.add(e.target); tick(e.target); }
  }
}, { rootMargin: '200px' });

function tick(element) {
  const at = Date.parse(element.dateTime);
  if ('left' in element.dataset) {
    const left = at - now();
    put(element, span(left));
    element.classList.toggle('soon', left >= 0 && left < soon);
    element.classList.toggle('late', left < 0);
  } else {
    put(element, age(now() - at));
  }
}

// start keeps the times below an element up to date.
export function start(below) {
  for (const element of below.querySelectorAll('time[data-at]')) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const same = at.toDateString() === new Date(now()).toDateString();
    element.textContent = (same ? today : other).format(at);
    element.title = exact.format(at);
  }
  for (const element of below.querySelectorAll('time[data-left], time[data-age]')) watcher.observe(element);
}

setInterval(() => {
  for (const element of seen) {
    if (element.isConnected) tick(element);
    else { seen.delete(element); watcher.unobserve(element); }
  }
}, 1000);
