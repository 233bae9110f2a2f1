// The menu: how many checks wait.

import { $, put } from './dom.js';
import * as requests from './requests.js';

export async function refresh() {
  const answer = await requests.part('part/waiting').catch(() => undefined);
  if (answer?.ok) put($('#waiting'), answer.html);
}

document.addEventListener('changed', refresh);
