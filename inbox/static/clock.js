// Times on the page: time left, age, and dates in the reader's time zone, by the
// server's clock.

import { chosen } from './preferences.js';

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

// format is of the time zone that the human has chosen, else of the browser's.
function format(options, locale) {
  try {
    return new Intl.DateTimeFormat(locale, { ...options, timeZone: chosen.zone || undefined });
  } catch { // a zone that this browser does not know
    return new Intl.DateTimeFormat(locale, options);
  }
}

const today = format({ hour: '2-digit', minute: '2-digit', second: '2-digit' });
const other = format({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const dated = format({ day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit' });
const exact = format({ dateStyle: 'full', timeStyle: 'long' });
const day = format({ dateStyle: 'short' });
const year = format({ year: 'numeric' });
const wall = format({ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }, 'en-US');

export const zone = () => exact.resolvedOptions().timeZone;

// offset returns the ms that the zone's clocks are ahead of UTC.
function offset(at) {
  const p = Object.fromEntries(wall.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(p.year, p.month - 1, p.day, p.hour, p.minute, p.second) - Math.floor(at / 1000) * 1000;
}

// read returns the time that an input of type datetime-local says in the zone.
export function read(value) {
  const utc = Date.parse(value + 'Z');
  return new Date(utc - offset(utc - offset(utc)));
}

// write returns a time as an input of type datetime-local has it.
export const write = (at) => new Date(at + offset(at)).toISOString().slice(0, 16);

// moment writes a time as short as it is clear: without the day today, and without the year this year.
function moment(at) {
  const same = (part) => part.format(at) === part.format(now());
  return (same(day) ? today : same(year) ? other : dated).format(at);
}

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
    element.textContent = moment(at);
    element.title = exact.format(at);
  }
  for (const element of below.querySelectorAll('[data-zone]')) element.textContent = zone();
  for (const element of below.querySelectorAll('time[data-left], time[data-age]')) watcher.observe(element);
}

setInterval(() => {
  for (const element of seen) {
    if (element.isConnected) tick(element);
    else { seen.delete(element); watcher.unobserve(element); }
  }
}, 1000);
