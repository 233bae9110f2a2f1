// A decision: built from the form and the item that was shown.

import * as act from './act.js';

export function made(item, decision, comment, authority) {
  const data = { escalationId: item.id, decision, revision: Number(item.revision), shown: item.shown || undefined };
  if (comment) data.comment = comment;
  if (authority) data.authority = authority;
  return act.made(item.session, 'INFORM', { type: 'resolution', data });
}

export { send } from './act.js';
