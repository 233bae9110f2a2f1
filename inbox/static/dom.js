// The elements of the page that several modules share.

import * as clock from './clock.js';
import { root } from './requests.js';

export const $ = (selector, below = document) => below.querySelector(selector);
export const all = (selector, below = document) => [...below.querySelectorAll(selector)];
export const body = document.body;

export const panes = $('#panes');
export const queue = $('#queue');
export const main = $('#main');
export const item = () => $('#item');
export const rows = () => all('.row', queue);

// The only place that turns a string into markup: parts of pages that our server has
// rendered and escaped.
const ours = globalThis.trustedTypes?.createPolicy('parley', { createHTML: (html) => html }) ?? { createHTML: (html) => html };

export function put(element, html) {
  element.innerHTML = ours.createHTML(html);
  clock.start(element);
}

// released waits while a pointer is down: an element that is replaced between a press and
// its release gets no click.
let down = false;
const ends = new EventTarget();
addEventListener('pointerdown', () => { down = true; }, true);
for (const end of ['pointerup', 'pointercancel', 'blur']) {
  addEventListener(end, () => setTimeout(() => { // after the click
    down = false;
    ends.dispatchEvent(new Event('end'));
  }));
}
export async function released() {
  while (down) await new Promise((ok) => { ends.addEventListener('end', ok, { once: true }); });
}

// parsed returns a part of a page that is not shown yet.
export const parsed = (html) => new DOMParser().parseFromString(ours.createHTML(html), 'text/html');

// told words an error for people. What JavaScript itself throws is a fault of ours.
export function told(error) {
  if (error.name === 'Error') return error.message;
  console.error(error);
  return 'Something went wrong on this page. Reload it to see what holds.';
}

let quiet;
export function say(text) {
  $('#toast').textContent = text;
  clearTimeout(quiet);
  quiet = setTimeout(() => { $('#toast').textContent = ''; }, 7000);
}

export function toDoor() {
  const here = location.href.slice(root.href.length);
  location.assign(new URL('login?next=' + encodeURIComponent(here), root));
}
