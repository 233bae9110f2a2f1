// The page of the human's own keys and preferences.

import { $, say, toDoor } from './dom.js';
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
