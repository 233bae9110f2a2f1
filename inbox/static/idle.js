// The idle lock: without input for a while, every tab of this browser signs out and
// hides what it shows. To go on, the key is asked again.

import { chosen } from './preferences.js';
import * as requests from './requests.js';

const input = 'parley-input'; // when the last input was, in any tab
const step = 5e3; // ms between checks

let noted = 0;
function note() {
  noted = Date.now();
  requests.store(input, noted);
}

async function lock() {
  document.documentElement.dataset.locked = '';
  requests.store(requests.locked, 'yes');
  const here = location.href.slice(requests.root.href.length);
  await requests.leave().catch(() => {}); // what is shown is hidden all the same
  location.replace(new URL('login?next=' + encodeURIComponent(here), requests.root));
}

function check() {
  if ('locked' in document.documentElement.dataset) return;
  const idle = chosen.idle * 60e3;
  const last = Number(requests.stored(input));
  if (requests.isLocked() || (idle && last && Date.now() - last >= idle)) lock();
}

export function watch() {
  check();
  if (!('locked' in document.documentElement.dataset)) note();
  for (const kind of ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart', 'input']) {
    document.addEventListener(kind, () => {
      if (Date.now() - noted < step) return;
      check();
      note();
    }, { capture: true, passive: true });
  }
  addEventListener('storage', check);
  document.addEventListener('visibilitychange', check);
  setInterval(check, step);
}
