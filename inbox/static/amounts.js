// Amounts: what somebody types, as the server understands it. A field with data-amount, the id of the
// currency beside it if it has one, says below it how it was understood.

import { $, all } from './dom.js';
import { get } from './requests.js';

const chosen = new WeakMap(); // field → {text, value} of the reading that was chosen
const turns = new WeakMap();
const says = (field) => document.getElementById(field.id + '-read');
const currency = (field) => document.getElementById(field.dataset.amount);

// exact is the value of a field in which nobody typed, or chose what the text means.
function exact(field) {
  const choice = chosen.get(field);
  if (choice?.text === field.value) return choice.value;
  return field.value === field.defaultValue ? field.dataset.exact ?? '' : '';
}

// read asks how a field is understood, and shows it. Only the last answer of a field is shown.
export async function read(field) {
  const turn = (turns.get(field) ?? 0) + 1;
  turns.set(field, turn);
  const { money = '', label = '', bound, stake = '', stakeCurrency = '', min = '', max = '', step = '' } = field.dataset;
  const rule = bound ?? ($('[data-rule]', field.closest('.term') ?? field)?.value || '');
  const answer = await get('amount?' + new URLSearchParams({
    typed: field.value.slice(0, 250), exact: exact(field), currency: currency(field)?.value ?? '', money, label, rule, stake, stakeCurrency, min, max, step,
  }));
  if (turns.get(field) === turn) show(field, answer);
  return answer;
}

function line(text, kind) {
  const span = document.createElement('span');
  span.className = kind;
  span.textContent = text;
  return span;
}

function show(field, { understood, choices = [], missing, fault, doubts = [] }) {
  const place = says(field);
  if (!place) return; // the page was shown anew
  if (missing === 'number') { place.replaceChildren(); return; }
  const buttons = choices.map(({ shown, value, currency: code = '' }) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = shown;
    button.addEventListener('click', () => choose(field, shown, value, code));
    return button;
  });
  place.replaceChildren(...[understood && line(understood, 'read'), fault && line(fault, 'wrong'), ...doubts.map((d) => line(d, 'doubt')), ...buttons].filter(Boolean));
}

// choose takes one of the readings.
function choose(field, shown, value, code) {
  field.value = code ? shown.slice(0, -code.length).trim() : shown;
  chosen.set(field, { text: field.value, value });
  if (code && currency(field)) currency(field).value = code;
  field.focus();
  field.dispatchEvent(new Event('input', { bubbles: true }));
}

let pause;
// typed shows, a moment after the last key, how what is typed is understood. It takes a field with an
// amount, its currency, or its rule.
export function typed(target) {
  const field = target.matches('[data-amount]') ? target
    : target.id && $(`[data-amount="${CSS.escape(target.id)}"]`) || target.matches('[data-rule]') && $('[data-amount]', target.closest('.term'));
  if (!field) return;
  clearTimeout(pause);
  turns.set(field, (turns.get(field) ?? 0) + 1); // an answer that is on its way is about another text
  pause = setTimeout(() => { read(field).catch(() => says(field)?.replaceChildren()); }, 150);
}

// opened shows how the amounts at stake in a form are understood.
export function opened(form) {
  for (const field of all('[data-amount][data-money], [data-stake=true] [data-amount]', form)) read(field).catch(() => {});
}

// A Fault is a field that cannot be signed.
export class Fault extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

// exactly returns what a field says: {value, currency, doubts}, or throws a Fault. The value is a number of at
// most 15 digits, which JSON keeps exactly.
export async function exactly(field) {
  const { value, currency: code, missing, fault, doubts = [] } = await read(field);
  if (fault) throw new Fault((missing === 'currency' && currency(field)) || field, fault);
  return { value: Number(value), currency: code, doubts };
}
