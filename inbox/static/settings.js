// The page of the human's own keys and preferences.

import { read, write } from './clock.js';
import { $, all, say, toDoor, told } from './dom.js';
import { choose, chosen } from './preferences.js';
import * as notices from './notices.js';
import * as requests from './requests.js';

async function revoke(form) {
  const submit = $('button[type=submit]', form);
  if (submit.disabled) return;
  submit.disabled = true;
  try {
    const signedIn = await requests.revoke(form.dataset.key);
    location.assign(new URL(signedIn ? 'settings' : 'login', requests.root));
  } catch (error) {
    if (error.status === 401) return toDoor();
    $('.refused', form).textContent = told(error);
    submit.disabled = false;
  }
}

document.addEventListener('click', ({ target }) => {
  const button = target.closest('[data-revoke]');
  if (button) document.getElementById(button.dataset.revoke).showModal();
});
document.addEventListener('submit', ({ target }) => { if (target.dataset.key) revoke(target); });

const preferences = $('#preferences');
for (const zone of ['UTC', ...Intl.supportedValuesOf('timeZone').filter((z) => z !== 'UTC')]) preferences.elements.zone.add(new Option(zone, zone));
const { zone, idle, sound } = preferences.elements;
zone.value = chosen.zone;
idle.value = chosen.idle;
sound.checked = chosen.sound;
preferences.addEventListener('change', () => {
  if (!preferences.reportValidity()) return;
  choose({ zone: zone.value, idle: Number(idle.value), sound: sound.checked });
  say('Saved for this browser.');
});
sound.addEventListener('change', () => { if (sound.checked) notices.beep(); });

// notified says whether new items are shown, and what the button does.
function notified() {
  const on = chosen.notify && notices.allowed();
  $('#notify').textContent = on ? 'Do not notify me' : 'Notify me of new items';
  $('#notify').disabled = !notices.possible();
  $('#notified').textContent = on ? 'This browser shows a notification while a page of the inbox is open.'
    : !notices.possible() ? 'This browser has no notifications.'
      : Notification.permission === 'denied' ? 'The browser blocks notifications of this site.' : '';
}
$('#notify').addEventListener('click', async () => {
  const on = chosen.notify && notices.allowed();
  choose({ notify: !on && (await Notification.requestPermission()) === 'granted' });
  notified();
});
notified();

// ---- the calendar ----

// feeds does something with feeds, and shows why it could not.
async function feeds(button, act) {
  button.disabled = true;
  $('#feed-refused').textContent = '';
  try {
    await act();
  } catch (error) {
    if (error.status === 401) return toDoor();
    $('#feed-refused').textContent = told(error);
  } finally {
    button.disabled = false;
  }
}

$('#feed').addEventListener('click', ({ target }) => feeds(target, async () => {
  const { path } = await requests.feed();
  $('#feed-made').hidden = false;
  $('#feed-url').value = new URL(path, requests.root);
  $('#feed-url').select();
}));
for (const button of all('[data-unfeed]')) {
  button.addEventListener('click', () => feeds(button, async () => {
    await requests.post('feed/remove', { id: button.dataset.unfeed });
    location.reload();
  }));
}

// ---- out of office ----

const absence = $('#absence');

async function away(request) {
  const buttons = all('button', absence);
  const refused = $('.refused', absence);
  refused.textContent = '';
  for (const b of buttons) b.disabled = true;
  try {
    await requests.post('call/human.away', request);
    location.reload();
  } catch (error) {
    if (error.status === 401) return toDoor();
    refused.textContent = told(error);
    for (const b of buttons) b.disabled = false;
  }
}

for (const field of all('input[data-time]', absence ?? undefined)) field.value = write(Date.parse(field.dataset.time));
absence?.addEventListener('submit', (event) => {
  event.preventDefault();
  const { to, from, until } = absence.elements;
  if (!absence.reportValidity()) return;
  away({ to: to.value, from: from.value ? read(from.value).toISOString() : undefined, until: read(until.value).toISOString() });
});
$('#back')?.addEventListener('click', () => away({}));
