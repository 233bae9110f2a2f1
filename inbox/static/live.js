// Live updates. One tab of each human holds the connection and broadcasts to the human's others. Each
// change carries the cursors before and after it, starting with the page's own. A tab
// that finds a gap reloads everything.

import { root } from './requests.js';

const name = 'parley-inbox' + root.pathname + (document.body.dataset.me ?? '');
const channel = new BroadcastChannel(name);
let holds = false; // this tab has the connection
let cursor = document.body.dataset.cursor ?? '';

// follow calls onChange with each {changed, reset, now} and whether this tab holds the
// connection, and state with 'yes' or 'no' and whether the server refused the connection.
export function follow(onChange, state) {
  channel.onmessage = ({ data }) => {
    if (!data.change) return state(data.live, data.refused);
    const gap = data.since !== cursor;
    cursor = data.cursor;
    state('yes', false);
    onChange(gap ? { ...data.change, reset: true } : data.change, holds);
  };
  const tell = (message) => { channel.postMessage(message); channel.onmessage({ data: message }); };
  const listen = () => new Promise(() => {
    holds = true;
    let source;
    let pause = 500;
    const open = () => {
      source = new EventSource(new URL('events?since=' + encodeURIComponent(cursor), root));
      source.onopen = () => { pause = 500; tell({ live: 'yes' }); };
      source.onmessage = ({ data, lastEventId }) => tell({ since: cursor, cursor: lastEventId, change: JSON.parse(data) });
      source.onerror = () => {
        const refused = source.readyState === EventSource.CLOSED;
        tell({ live: 'no', refused });
        if (!refused) return; // it reconnects by itself with Last-Event-ID
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
