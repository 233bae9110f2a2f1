/** Makes the document of an agreement out of the entries that made it, as a broker does. */

import { actOf, bodyOf, coreOf, didOf, digest, idOf, saltedBy, saltOf, signedHash } from './agreement.js';
import { canonical } from './json.js';
import type { Agreement, Outcome } from './outcome.js';
import { signedBy, unsigned, type Entry } from './verify.js';

type Members = Record<string, unknown>;

const classifications = [
  'none', 'trade_secret', 'banking_secrecy', 'auditor_confidentiality', 'tax_advisor_confidentiality', 'therapeutic_privilege',
  'medical_confidentiality', 'journalist_source_protection', 'confessional_seal', 'attorney_client_privileged', 'diplomatic_classified',
];

/** The document of one of the agreements that a session made, without its place in the log. */
export async function documentOf(outcome: Outcome, a: Agreement, entries: readonly Entry[], lines: readonly unknown[]): Promise<Members> {
  const [offer, acceptance] = [entries[a.offer]!, entries[a.acceptance]!];
  const confirmations = entries.slice(a.acceptance + 1, a.confirmed + 1).map((e) => e.sequence);
  const offers = actOf(offer) !== 'COMMIT';
  const said = offers ? bodyOf(offer) : {};
  const terms: Members = { ...(said['terms'] as Members | undefined) };
  if (a.commit || !offers) {
    const commitment = bodyOf(entries[a.commit || a.offer]!);
    Object.assign(terms, commitment['terms']);
    for (const name of ['deadline', 'escrow']) if (commitment[name] !== undefined) terms[name] = commitment[name];
  }
  const { category, effectiveUntil } = said;
  const effectiveFrom = said['effectiveFrom'] || entries[a.close || a.confirmed || a.acceptance]!.receipt.acceptedAt;
  const did = (party: string): string => (outcome.principals.includes(party) && outcome.pinned.get(party)?.did) || didOf(party);
  const salt = await saltOf(offer);
  const parties = a.parties.map(did);
  const core = await coreOf({
    session: offer.session, offer: a.name || idOf(offer), body: { terms, category, effectiveFrom, effectiveUntil }, parties, salt,
    inherited: inherited(outcome, did), oap: outcome.mode === 'binding/1' && outcome.policy['ids'] === 'oap',
  });
  const hash = await digest(core);
  const salts: Record<string, string> = {};
  for (const name of Object.keys(terms)) salts[name] = await saltedBy(salt, name);

  const signers = new Signers(outcome);
  for (const n of [a.offer, a.commit, a.acceptance, a.close, ...confirmations]) if (n) await signers.ofEntry(entries[n]!);
  const accepts = actOf(acceptance) === 'ACCEPT';
  const given = a.parties.map((_, i) => String((i > 0 ? bodyOf(acceptance) : said)['agreementSignature'] ?? ''));
  const signatures = await signers.ofHash(a, hash, given);
  const signed = accepts && a.parties.length === 2 && signatures.every((s) => s !== '');
  const dids = Object.fromEntries(a.parties.filter((p) => did(p) !== didOf(p)).map((p) => [p, did(p)]));
  return {
    ...core, agreement_hash: hash, terms, salts, ...(signed && { signatures: Object.fromEntries(parties.map((p, i) => [p, signatures[i]])) }),
    evidence: {
      offer: lines[a.offer], acceptance: lines[a.acceptance], commitment: a.commit ? lines[a.commit] : undefined,
      close: a.close ? lines[a.close] : undefined, confirmations: confirmations.length > 0 ? confirmations.map((n) => lines[n]) : undefined,
      keys: Object.fromEntries(signers.keys), rotated: some(signers.rotated), did_keys: signed ? some(signers.own) : undefined,
      dids: Object.keys(dids).length > 0 ? dids : undefined,
    },
  };
}

const some = <T>(map: Map<string, T>): Record<string, T> | undefined => (map.size > 0 ? Object.fromEntries(map) : undefined);

/** The keys that signed, of all that the transcript has pinned. */
class Signers {
  readonly keys = new Map<string, string>();
  readonly rotated = new Map<string, string[]>(); // that signed other entries
  readonly own = new Map<string, string>(); // that signed the hash, where keys has those of the entries

  constructor(readonly outcome: Outcome) {}

  async ofEntry(e: Entry): Promise<void> {
    this.#know(e.sender, await this.#find(e.sender, async (key) => signedBy(key, canonical(unsigned(e.sent)), e.signature)));
  }

  /** The parties' signatures over the hash, empty where one is not right. */
  async ofHash(a: Agreement, hash: string, given: readonly string[]): Promise<string[]> {
    const right: string[] = [];
    for (const [i, party] of a.parties.entries()) {
      const signature = a.signatures[party] ?? given[i]!;
      const key = await this.#find(party, async (k) => signedHash(k, hash, signature));
      if (!this.keys.has(party)) this.#know(party, key);
      right.push(key && (await signedHash(key, hash, signature)) ? signature : '');
      if (key !== (this.keys.get(party) ?? '')) this.own.set(party, key);
    }
    return right;
  }

  /** The key that signed, the newest if none did. */
  async #find(who: string, signed: (key: string) => Promise<boolean>): Promise<string> {
    const newestFirst = (this.outcome.keys.get(who) ?? []).toReversed();
    if (newestFirst.length > 1) for (const key of newestFirst) if (await signed(key)) return key;
    return newestFirst[0] ?? '';
  }

  #know(who: string, key: string): void {
    const [known, rotated] = [this.keys.get(who), this.rotated.get(who) ?? []];
    if (!key || key === known || rotated.includes(key)) return;
    if (known === undefined) this.keys.set(who, key);
    else this.rotated.set(who, [...rotated, key]);
  }
}

/** What an agreement has of the regulation of its session's principals. */
function inherited(outcome: Outcome, did: (party: string) => string): { ccc?: unknown; regulated_obligations?: unknown } {
  const of = outcome.principals.map((party) => ({ party: did(party), ccc: outcome.pinned.get(party)?.ccc }));
  const ranks = of.flatMap(({ ccc }) => (ccc ? [classifications.indexOf(ccc.regulatory_classification)] : []));
  if (ranks.length === 0) return {};
  const bound = of.flatMap(({ party, ccc }) => (ccc && ccc.regulatory_classification !== classifications[0] ? [{ party, ...ccc }] : []));
  return {
    ccc: { regulatory_classification: classifications[Math.max(...ranks)] },
    ...(bound.length > 0 && bound.length < of.length && { regulated_obligations: bound }),
  };
}
