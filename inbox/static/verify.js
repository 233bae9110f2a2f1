// The button that has the server verify a transcript.

import { toDoor } from './dom.js';
import * as talk from './talk.js';

export async function verify(button) {
  const found = button.nextElementSibling;
  button.disabled = true;
  found.textContent = 'Verifying …';
  try {
    const { entries, faults, count } = await talk.post(`verify/${button.dataset.session}`, {});
    found.textContent = count
      ? `Not genuine: ${count} ${count === 1 ? 'fault' : 'faults'} in ${entries} entries. ${faults.join('; ')}`
      : `Genuine: all ${entries} entries, their order, the receipts and the signatures are right.`;
    found.className = count ? 'verdict bad' : 'verdict good';
  } catch (error) {
    if (error.status === 401) return toDoor();
    found.textContent = error.message;
  } finally {
    button.disabled = false;
  }
}
