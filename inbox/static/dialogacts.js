// Dialogs whose forms sign an act about what the page shows.

import * as act from './act.js';
import { $, all, main, say, toDoor, told } from './dom.js';

export const writing = () => $('dialog[open] form', main);
export const text = (form, name) => form.elements[name]?.value.trim() || undefined;

// dialogs opens the dialogs of a page and sends their forms. about returns what the page shows, acts has what
// builds each act of it, said the words once it is accepted, and sent is called then. It returns what opens one.
export function dialogs({ about, acts, said, sent }) {
  let pending; // {form, written, envelope}: sent, without a definite reply

  async function sign(form) {
    const submit = $('button[type=submit]', form);
    const refused = $('.refused', form);
    if (submit.disabled) return; // a double click
    refused.textContent = '';
    if (!form.checkValidity()) return void form.reportValidity();
    submit.disabled = true;
    const kind = form.dataset.act;
    try {
      const written = JSON.stringify(all('input, textarea, select', form).map((f) => (f.type === 'checkbox' ? f.checked : f.value)));
      if (pending?.form !== form || pending.written !== written) {
        const [performative, body] = await acts[kind](form, about());
        pending = { form, written, envelope: await act.made(about().session, performative, body) };
      }
      await act.send(pending.envelope);
      pending = undefined;
      form.reset();
      form.closest('dialog').close();
      say(said[kind]);
      await sent(kind);
      main.focus({ preventScroll: true });
    } catch (error) {
      if (error.status === 401) return toDoor();
      if (error.status) pending = undefined; // answered: a retry is a new act
      refused.textContent = told(error);
      error.field?.focus();
    } finally {
      submit.disabled = false;
    }
  }

  function open(name) {
    const dialog = document.getElementById(name);
    if (!dialog || !$(`[data-form="${name}"]`, main) || writing()) return;
    pending = undefined;
    $('.refused', dialog).textContent = '';
    dialog.showModal();
    ($('textarea, select, input', dialog) ?? $('button[type=submit]', dialog)).focus();
  }

  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-form]');
    if (button) open(button.dataset.form);
  });
  document.addEventListener('submit', (event) => { if (event.target.dataset.act) sign(event.target); });
  return open;
}
