// Following the queue. One tab of a browser listens and tells the others, so
// that many tabs cost one connection. Each change says from where to where it
// leads, beginning with where the page was made: who finds a gap looks at
// everything again.

import { root } from './talk.js';

const name = 'parley-inbox' + root.pathname;
const channel = new BroadcastChannel(name);
let cursor = document.body.dataset.cursor ?? '';

// follow calls heard with each {changed, reset, now}, and state with yes or no,
// and whether the server said so itself.
export function follow(heard, state) {
  channel.onmessage = ({ data }) => {
    if (!data.change) return state(data.live, data.refused);
    const gap = data.since !== cursor;
    cursor = data.cursor;
    state('yes', false);
    heard(gap ? { ...data.change, reset: true } : data.change);
  };
  const tell = (message) => { channel.postMessage(message); channel.onmessage({ data: message }); };
  const listen = () => new Promise(() => {
    let source;
    let pause = 500;
    const open = () => {
      source = new EventSource(new URL('events?since=' + encodeURIComponent(cursor), root));
      source.onopen = () => { pause = 500; tell({ live: 'yes' }); };
      source.onmessage = ({ data, lastEventId }) => tell({ since: cursor, cursor: lastEventId, change: JSON.parse(data) });
      source.onerror = () => {
        const refused = source.readyState === EventSource.CLOSED;
        tell({ live: 'no', refused });
        if (!refused) return; // it comes back by itself, and says where it was
        setTimeout(open, pause);
        pause = Math.min(pause * 2, 15e3);
      };
    };
    open();
    addEventListener('pagehide', () => source.close());
  });
  if (navigator.locks) navigator.locks.request(name, listen);
  else listen();
}
