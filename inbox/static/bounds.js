// What a form allows the agent: the authority that is signed, and warnings where it is
// more than was asked for.

import { $, all } from './dom.js';
import { Fault, exactly } from './amounts.js';
import { now, read } from './clock.js';

const most = 64; // bounds in one authority

// amount is the single bound of an approval.
async function amount(form, warnings) {
  const { value, currency, doubts } = await exactly(form.elements.maxAmount);
  warnings.push(...doubts);
  return { maxAmount: value, currency, termPath: form.elements.termPath.value || undefined };
}

// term is the bound that a row of the Modify form sets, undefined for none.
async function term(row, warnings) {
  const rule = $('[data-rule]', row).value;
  if (!rule) return undefined;
  const { at, type } = row.dataset;
  const was = JSON.parse(row.dataset.raw);
  const field = $('[data-value]', row);
  const bound = { termPath: JSON.parse(at) };
  if (type === 'number') {
    const { value, currency, doubts } = await exactly(field);
    warnings.push(...doubts);
    return { bound: { ...bound, [rule]: value, currency }, same: value === Number(was) };
  }
  bound.equals = type === 'fixed' ? was : type === 'select' ? JSON.parse(field.value) : field.value;
  return { bound, same: JSON.stringify(bound.equals) === JSON.stringify(was) };
}

function until(form) {
  const field = form.elements.validUntil;
  if (!field?.value) return undefined;
  const at = read(field.value);
  if (at.getTime() <= now()) throw new Fault(field, '“Valid until” is in the past.');
  return at.toISOString();
}

// authority reads a form: {authority, warnings}, or a Fault. Without an authority the
// agent is not bound.
export async function authority(form) {
  const warnings = [];
  const said = {};
  if (form.dataset.decision === 'approved') {
    const extent = form.elements.extent?.value;
    if (extent === 'amount') Object.assign(said, await amount(form, warnings));
    if (extent === 'terms') said.termsHash = $('[name=extent]:checked', form).dataset.terms;
    said.validUntil = until(form);
  } else if (form.dataset.decision === 'modified') {
    const set = (await Promise.all(all('.term', form).map((row) => term(row, warnings)))).filter(Boolean);
    if (set.length > most) throw new Error(`At most ${most} terms can be bound. To allow these terms and no others, approve exactly the terms shown.`);
    if (set.length) said.bounds = set.map((s) => s.bound);
    said.validUntil = until(form);
    if (!said.validUntil && set.every((s) => s.same)) {
      throw new Error('This allows just what was asked for. Change a bound, set a time, or choose Approve instead.');
    }
  }
  if (form.elements.thread?.checked) said.scope = 'thread';
  const some = Object.values(said).some((v) => v !== undefined);
  return { authority: some ? said : undefined, warnings };
}

// bound lists what a form binds so far: terms, and the currency of those that are amounts.
function bound(form) {
  if (form.dataset.decision === 'modified') {
    return all('.term', form).filter((row) => $('[data-rule]', row).value)
      .map((row) => ({ path: JSON.parse(row.dataset.at), currency: $('[data-currency]', row)?.value }));
  }
  if (form.elements.extent?.value !== 'amount') return [];
  return [{ path: form.elements.termPath.value || $('#at-stake').dataset.amount || '', currency: form.elements.currency.value }];
}

// binds reports whether a bound is on a term, on what it is in, or on the amount whose
// currency it is.
function binds({ path, currency: code }, term) {
  const beside = path.slice(0, path.lastIndexOf('.') + 1) + 'currency';
  return term === path || term.startsWith(path + '.') || Boolean(code) && term === beside;
}

const named = 12; // terms that are named as free

// free says which terms of the offer at stake may change under what a form has so far.
export function free(form) {
  const says = $('[data-free]', form);
  if (!says) return;
  const set = bound(form);
  const left = all('#at-stake li').filter((li) => !set.some((b) => binds(b, li.dataset.path ?? ''))).map((li) => li.textContent);
  const names = left.length > named ? [...left.slice(0, named), `${left.length - named} more`] : left;
  says.textContent = set.length && names.length ? `May change: ${names.join(', ')}.` : '';
}

// choose sets the rule of a row whose value somebody edits, so that what is written
// is enforced.
export function choose(field) {
  const rule = $('[data-rule]', field.closest('.term') ?? undefined);
  if (rule && !rule.value && field.matches('[data-value]')) rule.value = 'amount' in field.dataset ? 'max' : 'equals';
}

// extent enables the fields of the choice in the Approve form.
export function extent(form) {
  const chosen = form.elements.extent?.value;
  for (const part of all('[data-extent]', form)) part.hidden = part.dataset.extent !== chosen;
}
