"""Makes the document of an agreement out of the entries that made it, as a broker does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ._json import JSON
from ._outcome import Agreement, Outcome
from .agreement import body_of, core_of, did_of, digest_of, id_of, salt_of, salts_of, signature_of, signed_hash, signed_part
from .verify import Entry, signed_by

_LEAST = "none"
_CLASSIFICATIONS = (_LEAST, "trade_secret", "banking_secrecy", "auditor_confidentiality", "tax_advisor_confidentiality",
                    "therapeutic_privilege", "medical_confidentiality", "journalist_source_protection", "confessional_seal",
                    "attorney_client_privileged", "diplomatic_classified")  # fmt: skip


def document_of(outcome: Outcome, a: Agreement, entries: Sequence[Entry], lines: Sequence[JSON]) -> JSON:
    """The document of one of the agreements that a session made, without its place in the log."""
    offer, acceptance = entries[a.offer], entries[a.acceptance]
    confirmations = range(a.acceptance + 1, a.confirmed + 1)
    offers = offer.sent["performative"] != "COMMIT"
    said = body_of(offer) if offers else {}
    terms = dict(said.get("terms", {}))
    if a.commit or not offers:
        commitment = body_of(entries[a.commit or a.offer])
        terms.update(commitment.get("terms") or {})
        terms.update({n: commitment[n] for n in ("deadline", "escrow") if n in commitment})
    body: JSON = {"effectiveFrom": entries[a.close or a.confirmed or a.acceptance].receipt["acceptedAt"], "terms": terms}
    body.update({n: said[n] for n in ("category", "effectiveFrom", "effectiveUntil") if said.get(n)})
    dids = _dids(outcome)
    parties = [dids.get(p) or did_of(p) for p in a.parties]
    prefix = "neg_" if outcome.mode == "binding/1" and outcome.policy.get("ids") == "oap" else ""
    salt = salt_of(offer)
    core = core_of(offer.session, a.name or id_of(offer), parties, body, salt, _inherited(outcome, dids), prefix)
    d: JSON = {**core, "agreement_hash": digest_of(core), "terms": terms, "salts": salts_of(terms, salt)}
    evidence: JSON = {"offer": lines[a.offer], "acceptance": lines[a.acceptance]}
    evidence.update({n: lines[at] for n, at in (("commitment", a.commit), ("close", a.close)) if at})
    if confirmations:
        evidence["confirmations"] = [lines[n] for n in confirmations]
    signers = _Signers(outcome)
    for n in (a.offer, a.commit, a.acceptance, a.close, *confirmations):
        if n:
            signers.of_entry(entries[n])
    given = [said.get("agreementSignature", ""), *[body_of(acceptance).get("agreementSignature", "")] * (len(a.parties) - 1)]
    signatures = signers.of_hash(a, d["agreement_hash"], given)
    if acceptance.sent["performative"] == "ACCEPT" and len(a.parties) == len(signatures) == 2:
        d["signatures"] = dict(zip(parties, signatures.values(), strict=True))
        evidence.update({"did_keys": signers.own} if signers.own else {})
    registered = {p: dids[p] for p in a.parties if p in dids}
    evidence.update({n: v for n, v in (("rotated", signers.rotated), ("dids", registered)) if v})
    return {**d, "evidence": {**evidence, "keys": signers.keys}}


class _Signers:
    """The keys that signed, of all that the transcript has pinned."""

    def __init__(self, outcome: Outcome) -> None:
        self._pinned = outcome.keys
        self.keys: dict[str, str] = {}
        self.rotated: dict[str, list[str]] = {}  # that signed other entries
        self.own: dict[str, str] = {}  # that signed the hash, where keys has those of the entries

    def of_entry(self, e: Entry) -> None:
        self._know(e.sender, self._find(e.sender, lambda key: signed_by(key, signed_part(e), signature_of(e))))

    def of_hash(self, a: Agreement, of: str, given: Sequence[str]) -> dict[str, str]:
        """The parties' signatures over the hash that are right."""
        right = {}
        for party, first in zip(a.parties, given, strict=True):
            signature = a.signatures.get(party, first)
            key = self._find(party, lambda key, said=signature: signed_hash(key, of, said))  # type: ignore[misc]
            if party not in self.keys:
                self._know(party, key)
            if key and signed_hash(key, of, signature):
                right[party] = signature
            if key != self.keys.get(party, ""):
                self.own[party] = key
        return right

    def _find(self, who: str, signed: Callable[[str], bool]) -> str:
        """The key that signed, the newest if none did."""
        newest_first = self._pinned.get(who, [])[::-1]
        if len(newest_first) == 1:
            return newest_first[0]
        return next((k for k in newest_first if signed(k)), newest_first[0] if newest_first else "")

    def _know(self, who: str, key: str) -> None:
        known, rotated = self.keys.get(who), self.rotated.get(who, [])
        if not key or key == known or key in rotated:
            return
        if known is None:
            self.keys[who] = key
        else:
            self.rotated[who] = [*rotated, key]


def _dids(outcome: Outcome) -> dict[str, str]:
    """Those that principals have registered instead of that of their host."""
    return {p: outcome.pinned[p]["did"] for p in outcome.principals if outcome.pinned[p].get("did")}


def _inherited(outcome: Outcome, dids: dict[str, str]) -> JSON:
    """What an agreement has of the regulation of its session's principals."""
    of = {p: outcome.pinned[p].get("ccc") for p in outcome.principals}
    said = [c["regulatory_classification"] for c in of.values() if c]
    if not said:
        return {}
    inherited: JSON = {"ccc": {"regulatory_classification": max(said, key=_CLASSIFICATIONS.index)}}
    bound = [{"party": dids.get(p) or did_of(p), **c} for p, c in of.items() if c and c["regulatory_classification"] != _LEAST]
    if bound and len(bound) < len(of):
        inherited["regulated_obligations"] = bound
    return inherited
