// Desktop notifications of new items, where the human has asked for them.

import { parsed } from './dom.js';
import { chosen } from './preferences.js';
import * as requests from './requests.js';

export const possible = () => 'Notification' in globalThis;
export const allowed = () => possible() && Notification.permission === 'granted';

const told = new Set();
const began = Date.parse(document.body.dataset.now); // of the page, by the server's clock

// news tells of those of the changed items that are new and the human's to decide. It
// shows nothing that a counterparty wrote: others may see the screen.
export async function news(changed) {
  if (!chosen.notify || !allowed() || !changed.some((id) => !told.has(id))) return;
  const answer = await requests.part('part/queue?sort=newest&limit=20').catch(() => undefined);
  if (!answer?.ok) return;
  let rang = false;
  for (const row of parsed(answer.html).querySelectorAll('.row')) {
    const { id } = row.dataset;
    const text = (selector) => row.querySelector(selector)?.textContent.trim() ?? '';
    if (!changed.includes(id) || told.has(id)) continue;
    told.add(id);
    if (Date.parse(row.querySelector('[data-age]').dateTime) < began || !/^(you can decide|\d+ of \d+)$/.test(text('.mark'))) continue;
    show(id, `Decision needed (${text('.urgency')})`, [text('.who span'), text('.amount')].filter(Boolean).join(' · '));
    rang = true;
  }
  if (rang && chosen.sound) beep();
}

function show(id, title, body) {
  try {
    const notice = new Notification(title, { body, tag: 'parley ' + id });
    notice.onclick = () => { focus(); location.assign(new URL('items/' + id, requests.root)); };
  } catch { /* this browser shows none from a page */ }
}

export function beep() {
  const audio = new AudioContext();
  const tone = audio.createOscillator();
  const volume = audio.createGain();
  volume.gain.value = 0.1;
  tone.frequency.value = 660;
  tone.connect(volume).connect(audio.destination);
  tone.onended = () => audio.close();
  tone.start();
  tone.stop(audio.currentTime + 0.15);
}
