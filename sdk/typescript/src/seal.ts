/** What an ESCALATE keeps from the other side (PROTOCOL.md section 7). The broker seals that of hosted agents. */

import { sha256 } from './crypto.js';
import { canonical, digestOf, toBase64 } from './json.js';
import type { Signer } from './sign.js';
import type { Draft } from './wire.js';

const secret = ['context', 'suggestedAction'];

/** The body without what is sealed. An act's id derives from it: everybody reads the id, and could try values out by it. */
export function shown({ performative, body }: Draft): Record<string, unknown> {
  if (performative !== 'ESCALATE') return body;
  return Object.fromEntries(Object.entries(body).filter(([name]) => !secret.includes(name)));
}

/** The act with digests in place of what is sealed, and what opens them. The salts derive from the key, so a repeat has the same. */
export async function sealed(draft: Draft, session: string, messageId: string, signer: Signer | undefined): Promise<Draft> {
  const names = draft.performative === 'ESCALATE' ? secret.filter((name) => draft.body[name] !== undefined) : [];
  if (!signer || names.length === 0) return draft;
  const encoder = new TextEncoder();
  const digests: Record<string, string> = {};
  const opens: NonNullable<Draft['opens']> = {};
  for (const name of names) {
    const value = JSON.parse(JSON.stringify(draft.body[name])) as unknown; // as it is sent, such as a Date
    const signed = await signer.sign(encoder.encode(`parley seal salt\n${session}\n${messageId}\n${canonical([name, value])}`));
    const salt = toBase64(await sha256(signed));
    digests[name] = await digestOf(encoder.encode(canonical([salt, name, value])));
    opens[name] = { salt, value };
  }
  return { ...draft, body: { ...shown(draft), sealed: digests }, opens };
}
