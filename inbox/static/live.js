// Following the queue. One tab of a browser listens and tells the others, so
// that many tabs cost one connection.

import { root } from './talk.js';

const channel = new BroadcastChannel('parley-inbox' + root.pathname);

// follow calls heard with each {changed, reset, now}, and state with yes or no,
// and whether the server said so itself.
export function follow(heard, state) {
  channel.onmessage = ({ data }) => { data.change ? heard(data.change) : state(data.live, data.refused); };
  const tell = (message) => { channel.postMessage(message); channel.onmessage({ data: message }); };
  const listen = () => new Promise(() => {
    let source;
    let pause = 500;
    let lost = false;
    const open = () => {
      source = new EventSource(new URL('events', root));
      source.onopen = () => {
        tell({ live: 'yes' });
        if (lost) tell({ change: { changed: [], reset: true } });
        lost = false;
        pause = 500;
      };
      source.onmessage = ({ data }) => tell({ change: JSON.parse(data) });
      source.onerror = () => {
        lost = true;
        const refused = source.readyState === EventSource.CLOSED;
        tell({ live: 'no', refused });
        if (!refused) return; // it comes back by itself
        setTimeout(open, pause);
        pause = Math.min(pause * 2, 15e3);
      };
    };
    open();
    addEventListener('pagehide', () => source.close());
  });
  if (navigator.locks) navigator.locks.request('parley-inbox' + root.pathname, listen);
  else listen();
}
