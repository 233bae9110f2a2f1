// The page of agents: it searches as one types.

import * as talk from './talk.js';
import { $, put, toDoor } from './dom.js';

const input = $('#agent-search');
const list = $('#agents');
let turn = 0;
let pause;

async function find() {
  clearTimeout(pause);
  const mine = ++turn;
  const query = input.value ? '?' + new URLSearchParams({ search: input.value }) : '';
  try {
    const answer = await talk.part('part/agents' + query);
    if (mine !== turn || !answer.ok) return;
    put(list, answer.html);
    $('#found').textContent = $('[data-found]', list).dataset.found;
    history.replaceState(history.state, '', new URL('agents' + query, talk.root));
  } catch (error) {
    if (error.status === 401) toDoor();
  }
}

input.addEventListener('input', () => { clearTimeout(pause); pause = setTimeout(find, 150); });
$('#find').addEventListener('submit', (event) => { event.preventDefault(); find(); });
