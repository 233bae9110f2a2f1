// The page of the human's own keys and preferences.

import { read, write } from './clock.js';
import { $, all, say, toDoor } from './dom.js';
import { choose, chosen } from './preferences.js';
import * as talk from './talk.js';

async function revoke(form) {
  const submit = $('button[type=submit]', form);
  if (submit.disabled) return;
  submit.disabled = true;
  try {
    const signedIn = await talk.revoke(form.dataset.key);
    location.assign(new URL(signedIn ? 'settings' : 'login', talk.root));
  } catch (error) {
    if (error.status === 401) return toDoor();
    $('.refused', form).textContent = error.message;
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
for (const [name, value] of Object.entries(chosen)) {
  const field = preferences.elements[name];
  if (field) field.value = value;
}
preferences.addEventListener('change', () => {
  choose({ zone: preferences.elements.zone.value });
  say('Saved for this browser.');
});

// ---- out of office ----

const absence = $('#absence');

async function away(request) {
  const buttons = all('button', absence);
  const refused = $('.refused', absence);
  refused.textContent = '';
  for (const b of buttons) b.disabled = true;
  try {
    await talk.post('call/human.away', request);
    location.reload();
  } catch (error) {
    if (error.status === 401) return toDoor();
    refused.textContent = error.message;
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
