// The items that are selected in the queue, of those that it shows.

import { $, all, queue } from './dom.js';

const picks = new Set();
const boxes = () => all('[data-pick]', queue);

export const picked = () => [...picks];

// draw shows what is selected. What the queue does not show is not selected any more.
export function draw() {
  const shown = new Set(boxes().map((box) => box.dataset.pick));
  for (const id of picks) if (!shown.has(id)) picks.delete(id);
  for (const box of boxes()) box.checked = picks.has(box.dataset.pick);
  const bar = $('#several-bar');
  bar.hidden = !picks.size;
  $('[role=status]', bar).textContent = picks.size ? `${picks.size} selected` : '';
}

export function pick(id, yes) {
  if (yes) picks.add(id);
  else picks.delete(id);
  draw();
}

// toggle selects the row that has the focus, or no longer.
export function toggle() {
  const box = $('[data-pick]', document.activeElement?.closest('.rows > li') ?? document.createElement('i'));
  if (box) pick(box.dataset.pick, !box.checked);
}

export function clear() {
  picks.clear();
  draw();
}
