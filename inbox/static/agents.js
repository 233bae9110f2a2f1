// The page of agents: it searches as one types.

import * as requests from './requests.js';
import { $, put, toDoor } from './dom.js';

const input = $('#agent-search');
const list = $('#agents');
let pause;
let asking = false;
let again = false;

// find shows what the words find. Each answer counts the reader's sessions, so that it asks for
// no other one before it has come.
async function find() {
  clearTimeout(pause);
  again = asking;
  if (asking) return;
  asking = true;
  do {
    again = false;
    await asks();
  } while (again);
  asking = false;
}

async function asks() {
  const query = input.value ? '?' + new URLSearchParams({ search: input.value }) : '';
  try {
    const answer = await requests.part('part/agents' + query);
    if (again || !answer.ok) return;
    put(list, answer.html);
    $('#found').textContent = $('[data-found]', list).dataset.found;
    history.replaceState(history.state, '', new URL('agents' + query, requests.root));
  } catch (error) {
    if (error.status === 401) toDoor();
  }
}

input.addEventListener('input', () => { clearTimeout(pause); pause = setTimeout(find, 250); });
$('#find').addEventListener('submit', (event) => { event.preventDefault(); find(); });
