/** What a party signs in binding/1: the hash of the agreement that an offer becomes (GATEWAYS.md G4). */

import { didOf, hashOf, hashOfAgreement, saltIn } from './agreement.js';
import { offerIn, type Deal } from './deal.js';
import { canonical, toBase64 } from './json.js';
import type { Signer } from './sign.js';
import type { Draft } from './wire.js';

interface SessionView {
  participants: { agentId: string; role: string; did?: string }[];
  ccc?: unknown;
  regulatedObligations?: unknown;
  ids?: string;
}

/**
 * The act with salt, beginning and signature of the agreement, which the same act always has alike. The broker does
 * this for hosted agents. What it says of the offer is not signed: the offer itself is.
 */
export async function bound<T>(deal: Deal<T>, draft: Draft, signer: Signer | undefined, ask: (verb: string, request: Record<string, unknown>) => Promise<unknown>): Promise<Draft> {
  if (!signer || deal.view.mode !== 'binding/1' || !['inviter', 'invitee'].includes(deal.role)) return draft;
  let { body } = draft;
  let [offered, offer, by] = [body, body['proposalId'] as string, deal.me];
  if (draft.performative === 'PROPOSE' || draft.performative === 'COUNTER') {
    const said = new TextEncoder().encode(`parley agreement salt\n${deal.id}\n${deal.head}${canonical(body)}`);
    const { receipt } = deal.entries.at(-1)!.integrity as { receipt: { acceptedAt: string } };
    const agreementSalt = toBase64(await hashOf(await signer.sign(said)));
    offered = body = { agreementSalt, effectiveFrom: `${receipt.acceptedAt.slice(0, 19)}Z`, ...body };
  } else if (draft.performative === 'ACCEPT') {
    offer = body['referenceId'] as string;
    const entry = offerIn(deal.entries, offer);
    if (!entry) return draft;
    offered = entry.content.body;
    by = (entry.integrity['onBehalfOf'] as string | undefined) ?? entry.sender.agentId;
  } else return draft;
  const salt = saltIn(offered);
  if (!salt || !offered['terms']) return draft; // the invitation
  const session = (await ask('session.get', { sessionId: deal.id })) as SessionView;
  const principals = session.participants.filter((p) => p.role === 'inviter' || p.role === 'invitee');
  const parties = [...principals.filter((p) => p.agentId === by), ...principals.filter((p) => p.agentId !== by)].map((p) => p.did ?? didOf(p.agentId));
  const inherited = { ccc: session.ccc, regulated_obligations: session.regulatedObligations };
  const hash = await hashOfAgreement({ session: deal.id, offer, body: offered, parties, salt, inherited, oap: session.ids === 'oap' });
  return { ...draft, body: { agreementSignature: toBase64(await signer.sign(new TextEncoder().encode(hash))), ...body } };
}
