// Signing in.

import { $, body, told } from './dom.js';
import { possible } from './guard.js';
import * as keys from './keys.js';
import * as requests from './requests.js';

const page = /^((?!login|openid|callback|events|amount|static)[a-z]+(\/[0-9a-f-]{36}(\/(obligation|dispute))?)?)?(\?[\w=&.~*%+-]*)?$/;
const next = (to = new URLSearchParams(location.search).get('next') || '') => new URL(page.test(to) ? to : './', requests.root);

export async function door() {
  const refused = (error) => { $('#refused').textContent = told(error); };
  // Registered before the first await, so that an early submit is not lost.
  document.addEventListener('submit', async (event) => {
    event.preventDefault();
    const form = event.target;
    const button = $('button', form);
    if (button.disabled) return;
    button.disabled = true;
    $('#refused').textContent = '';
    try {
      if (form.dataset.do === 'be') await requests.be(form.elements.agent.value.trim());
      else if ((await requests.enrol(form.elements.code.value, form.elements.name.value.trim(), form.elements.guarded.checked)).openid) return void location.assign($('#openid').href);
      location.replace(next());
    } catch (error) {
      refused(error);
      button.disabled = false;
    }
  });
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-do=be][data-agent]');
    if (button) requests.be(button.dataset.agent).then(() => location.replace(next()), refused);
  });
  if ('dev' in body.dataset) return;
  const back = new URL(location.href);
  if (back.pathname.endsWith('/callback')) { // from the OpenID provider; its code stays in no history
    history.replaceState({}, '', new URL('login?out', requests.root));
    return void requests.callback(Object.fromEntries(back.searchParams)).then((answer) => location.replace(next(answer.next)), refused);
  }
  const why = keys.impossible();
  if (why) return refused(new Error(why));
  const code = /^#code=([\w-]{4,40})$/.exec(location.hash)?.[1];
  if (code && /^(127\.0\.0\.1|\[::1\]|localhost)$/.test(location.hostname)) { // the demo's link; elsewhere a person types the code
    history.replaceState({}, '', location.pathname + location.search);
    return void requests.enrol(code, 'demo', false).then(() => location.replace(next()), refused);
  }
  possible().then((yes) => { $('#guard').hidden = !yes; });
  const key = await keys.current().catch(() => undefined);
  if ($('#main').dataset.openid) return void (requests.isLocked() && refused(new Error('Locked: there was no input for a while.')));
  if (!key) return;
  const enter = async () => {
    $('#refused').textContent = '';
    $('#known').hidden = false;
    $('#again').hidden = true;
    try {
      await requests.enter(key);
      location.replace(next());
    } catch (error) {
      $('#known').hidden = true;
      $('#again').hidden = !key.guard; // it may be tried again
      refused(error);
    }
  };
  if (!new URLSearchParams(location.search).has('out') && !requests.isLocked() && !key.guard) return enter();
  if (requests.isLocked()) {
    $('#why').textContent = 'Locked: there was no input for a while.';
    $('[data-do=again]').textContent = 'Unlock';
  } else if (key.guard) {
    $('#why').textContent = 'You are not signed in.';
    $('[data-do=again]').textContent = 'Sign in';
  }
  $('#again b').textContent = key.agentId;
  $('#again').hidden = false;
  $('[data-do=again]').addEventListener('click', enter);
  $('[data-do=forget]').addEventListener('click', async () => {
    await keys.forget();
    $('#again').hidden = true;
  });
}
