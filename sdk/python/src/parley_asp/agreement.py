"""Verifies an agreement offline: its terms, its hash, who signed it, the entries that made it, its place in the log.

The rules are those of ``parley agreement verify`` (docs/AGREEMENTS.md)::

    report = verify_agreement(document, broker="UC…", log_key="parley.example/log+…")
    assert not report.faults and report.proves == "signatures"

An agreement may have terms taken out (redacted): the digest of each is still under the hash. It needs
``parley-asp[nats]``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import rfc8785

from ._json import JSON, dumps
from .brokerkeys import TrustedKeys, trusted_by
from .publiclog import ProofError, verify_inclusion
from .verify import Entry, Unreadable, integer_of, members_once, no_constant, raw_key, read_entry, signed_by

_CROCKFORD = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789ABCDEFGHJKMNPQRSTVWXYZ")
_TEXT = ("agreement_id", "negotiation_id", "effective_from", "agreement_hash")
_CORE = ("agreement_id", "negotiation_id", "parties", "category", "terms_digests", "effective_from", "effective_until", "ccc",
         "regulated_obligations")  # fmt: skip
_MEMBERS = {*_CORE, "terms", "salts", "agreement_hash", "signatures", "evidence", "log"}
_EVIDENCE = {"offer", "commitment", "acceptance", "close", "confirmations", "keys", "rotated", "did_keys", "dids"}


@dataclass(frozen=True)
class AgreementFault:
    """One thing that is wrong with an agreement; ``member`` is a JSON Pointer."""

    member: str
    why: str

    def __str__(self) -> str:
        return f"{self.member}: {self.why}"


@dataclass
class AgreementReport:
    """What was verified of an agreement. Without faults it proves what ``proves`` says."""

    faults: list[AgreementFault] = field(default_factory=list)
    signed: list[str] = field(default_factory=list)  # the parties whose signature over the hash is right
    redacted: list[str] = field(default_factory=list)  # terms of which only the digest is there
    logged: bool = False  # it is in the public log, by the log's key
    entries: bool = False  # offer and acceptance are there

    @property
    def proves(self) -> str:
        """``signatures``: every party signed the hash. ``entries``: the signed offer and acceptance make this agreement.

        ``digests``: the terms are those of the hash; who agreed to them is not proven.
        """
        return "signatures" if self.signed else "entries" if self.entries else "digests"


def verify_agreement(
    document: bytes | str | Mapping[str, Any],
    *,
    broker: str = "",
    broker_keys: Sequence[Mapping[str, Any]] | None = None,
    log_key: str = "",
    keys: Mapping[str, str] | None = None,
    allow_unsigned: bool = False,
) -> AgreementReport:
    """Check an agreement with what you trust. What is not given is taken from the document, and proves less.

    Args:
        broker: the public key of the broker whose receipts the entries have.
        broker_keys: the history of its keys, where it has replaced one (``parley_asp.brokerkeys``); without
            ``broker`` its newest is trusted.
        log_key: of the public log, as ``parley log key`` prints it.
        keys: of parties, by URI, that you know from elsewhere. Each has to have signed.
        allow_unsigned: take entries of a broker under ``--dev``.

    Raises:
        BrokerKeysError: the history is not genuine, or does not have the broker's key.
    """
    by = trusted_by(broker, broker_keys)
    return verify_trusting(document, by, log_key=log_key, keys=keys, allow_unsigned=allow_unsigned, demand=True)


def verify_trusting(
    document: bytes | str | Mapping[str, Any],
    by: TrustedKeys | None,
    *,
    log_key: str,
    keys: Mapping[str, str] | None,
    allow_unsigned: bool,
    demand: bool = False,
) -> AgreementReport:
    """``verify_agreement`` by keys that are checked; unless they are demanded, what they have not signed may hold."""
    check = _Check(by, dict(keys or {}), allow_unsigned)
    try:
        data = dumps(document) if isinstance(document, Mapping) else document
        read = json.loads(data, object_pairs_hook=members_once, parse_int=integer_of, parse_constant=no_constant)
        check.document(_shaped(read))
        check.log(log_key)
        if demand:
            check.demand()
    except (Unreadable, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        check.fault("", f"is no agreement: {error}")
    return check.report


class _Check:
    def __init__(self, broker: TrustedKeys | None, trusted: dict[str, str], unsigned: bool) -> None:
        self.report = AgreementReport()
        self._broker, self._trusted, self._unsigned = broker, trusted, unsigned
        self._signers: dict[str, set[str]] = {}  # the keys that signed for each, entries first

    def fault(self, member: str, why: str) -> None:
        self.report.faults.append(AgreementFault(member, why))

    def document(self, d: JSON) -> None:
        self._d, self._said = d, d.get("evidence") or {}
        self._parties = [self._party(i, did) for i, did in enumerate(d["parties"])]
        self._hashes()
        self._dates()
        self._evidence()
        self._signatures()

    def _party(self, i: int, did: str) -> str:
        for agent, registered in self._said.get("dids", {}).items():
            if registered == did:
                return str(agent)
        if not did.startswith("did:web:"):
            self.fault(f"/parties/{i}", "is no DID of a principal")
            return ""
        path = did[len("did:web:") :].replace(":", "/")
        return "human://" + path.replace("/%40", "/", 1) if "/%40" in path else "agent://" + path

    def _hashes(self) -> None:
        d = self._d
        terms, salts, digests = d["terms"], d["salts"], d["terms_digests"]
        for name in sorted(digests):
            if name not in terms:
                self.report.redacted.append(name)
            elif digest_of([salts.get(name, ""), name, terms[name]]) != digests[name]:
                self.fault(f"/terms/{name}", "the term and its salt do not have the digest of terms_digests")
        for name in sorted(set(terms) - set(digests)):
            self.fault(f"/terms/{name}", "terms_digests has no such term")
        for name in sorted(set(salts) - set(terms)):
            self.fault(f"/salts/{name}", "terms has no such term")
        if digest_of({name: d[name] for name in _CORE if name in d}) != d["agreement_hash"]:
            self.fault("/agreement_hash", "is not the hash of the agreement")
        if len(d["parties"]) < 2:
            self.fault("/parties", "an agreement has two parties or more")

    def _dates(self) -> None:
        begins = time_of(self._d["effective_from"])
        if begins is None:
            self.fault("/effective_from", "is no date and time")
        if "effective_until" in self._d:
            ends = time_of(self._d["effective_until"])
            if begins is None or ends is None or ends <= begins:
                self.fault("/effective_until", "is not after effective_from")

    # --- the entries that made it

    def _evidence(self) -> None:
        said = self._said
        if "offer" not in said and "acceptance" not in said:
            return
        self.report.entries = True
        names = [n for n in ("offer", "commitment", "acceptance", "close") if n in said or n in ("offer", "acceptance")]
        found = {name: self._entry(f"/evidence/{name}", said.get(name)) for name in names}
        confirmed = [self._entry(f"/evidence/confirmations/{i}", e) for i, e in enumerate(said.get("confirmations", []))]
        entries = {name: e for name, e in found.items() if e is not None}
        rulings = [e for e in confirmed if e is not None]
        if len(entries) < len(found) or len(rulings) < len(confirmed):
            return
        for agent, more in said.get("rotated", {}).items():
            if not set(more) <= self._signers.get(agent, set()):
                self.fault(f"/evidence/rotated/{agent}", "a key signed no entry")
        self._follows(entries)
        self._confirmed(entries, rulings)
        self._made(entries, rulings)
        self._agreed_by(entries)

    def _entry(self, member: str, entry: Any) -> Entry | None:
        """Check one entry as far as it stands alone."""
        try:
            e = read_entry(rfc8785.dumps(entry))
        except (Unreadable, ValueError, TypeError, AttributeError) as error:
            self.fault(member, str(error))
            return None
        if e.recomputed != e.hash:
            self.fault(member, "its hash is not that of its bytes")
        if not (self._broker or TrustedKeys(e.receipt["broker"])).receipted(e.hash, e.receipt):
            self.fault(member, "its receipt is not signed by the broker")
        signature = signature_of(e)
        if not signature and self._unsigned:
            return e
        signed = signed_part(e)
        first = self._said.get("keys", {}).get(e.sender, "")
        keys = [first, *self._said.get("rotated", {}).get(e.sender, [])]
        by = next((k for k in keys if k and signed_by(k, signed, signature)), "")
        apart = e.sender in self._said.get("did_keys", {})  # then the trusted key signed the hash
        if not first:
            self.fault(member, f"the key of {e.sender} is not known")
        elif not by:
            self.fault(member, f"{e.sender} did not sign it with the key {first}")
        elif e.sender in self._trusted and not apart and self._trusted[e.sender] not in keys:
            self.fault(member, f"{e.sender} did not sign it with the key {self._trusted[e.sender]}")
        else:
            self._signers.setdefault(e.sender, set()).add(by)
        return e

    def _follows(self, entries: dict[str, Entry]) -> None:
        """Each entry is about the one before, and comes after it."""
        wanted = {"commitment": ("COMMIT",), "acceptance": ("ACCEPT", "COMMIT"), "close": ("CLOSE",)}
        before, about = entries["offer"], id_of(entries["offer"])
        for name, acts in wanted.items():
            e = entries.get(name)
            if e is None:
                continue
            body = body_of(e)
            if act_of(e) not in acts:
                self.fault(f"/evidence/{name}", f"is a {act_of(e)}")
            if name == "close":
                if body.get("outcome", "completed") != "completed" or "commitment" in entries:
                    self.fault("/evidence/close", "is no CLOSE with the outcome completed")
            elif body.get("referenceId") != about:
                self.fault(f"/evidence/{name}", "is about another offer")
            if e.session != before.session or e.sequence <= before.sequence:
                self.fault(f"/evidence/{name}", "does not follow the offer")
            before, about = e, id_of(e)

    def _confirmed(self, entries: dict[str, Entry], rulings: list[Entry]) -> None:
        """People of each party's organisation have confirmed what was accepted, if anybody has."""
        missing = {_organisation(p) for p in self._parties} if rulings else set()
        before = entries["acceptance"]
        for i, e in enumerate(rulings):
            ruling = body_of(e).get("data")
            asked = ruling.get("escalationId") if isinstance(ruling, dict) else None
            right = isinstance(ruling, dict) and act_of(e) == "INFORM" and ruling.get("decision") == "approved"
            if not right or asked not in (entries["offer"].id, entries["acceptance"].id):
                self.fault(f"/evidence/confirmations/{i}", "confirms nothing of this agreement")
            elif e.session != before.session or e.sequence != before.sequence + 1:
                self.fault(f"/evidence/confirmations/{i}", "does not follow the acceptance")
            missing.discard(_organisation(e.sender))
            before = e
        for organisation in sorted(missing):
            self.fault("/evidence/confirmations", f"nobody of {organisation} has confirmed it")

    def _made(self, entries: dict[str, Entry], rulings: list[Entry]) -> None:
        """The entries make exactly this agreement."""
        d, offer, commitment = self._d, entries["offer"], entries.get("commitment")
        body = body_of(offer)
        terms = body.get("terms")
        name = id_of(offer)
        if commitment is not None or act_of(offer) == "COMMIT":
            said = body_of(commitment or offer)
            terms = {**(terms if commitment is not None and isinstance(terms, dict) else {}), **said.get("terms", {}),
                     **{n: said[n] for n in ("deadline", "escrow") if n in said}}  # fmt: skip
            if commitment is not None and d["agreement_id"] == agreement_id_of(offer.session, id_of(commitment)):
                name = id_of(commitment)
        if not isinstance(terms, dict):
            self.fault("/evidence/offer", "the entry makes no offer")
            return
        accepted = entries.get("close") or (rulings[-1] if rulings else entries["acceptance"])
        inherited: JSON = {name: d[name] for name in ("ccc", "regulated_obligations") if name in d}
        prefix = "neg_" if d["negotiation_id"].startswith("neg_") else ""
        made = hash_of(
            offer.session, name, d["parties"], {"effectiveFrom": accepted.receipt["acceptedAt"], **body, "terms": terms},
            salt_of(offer), inherited, prefix,
        )  # fmt: skip
        if made != d["agreement_hash"]:
            self.fault("/agreement_hash", "the entries of offer and acceptance make another agreement")
        if len(d["terms"]) < len(d["terms_digests"]):
            self.fault("/evidence/offer", "tells the terms that were taken out")
        given = [body_of(e).get("agreementSignature", "") for e in (offer, entries["acceptance"])]
        told = [d.get("signatures", {}).get(did, "") for did in d["parties"]]
        if any(g and t and g != t for g, t in zip(given, told, strict=False)) or (not any(told) and self._all_signed(given)):
            self.fault("/signatures", "are not those of the entries")

    def _all_signed(self, given: list[str]) -> bool:
        keys = [self._said.get("did_keys", {}).get(p) or self._said.get("keys", {}).get(p, "") for p in self._parties]
        return len(keys) == 2 and all(signed_hash(k, self._d["agreement_hash"], g) for k, g in zip(keys, given, strict=True))

    def _agreed_by(self, entries: dict[str, Entry]) -> None:
        """The parties are those who made the offer, accepted it, and committed to it."""
        made, accepter = side_of(entries["offer"]), side_of(entries["acceptance"])
        right = [made] == self._parties[:1]
        if "commitment" in entries:
            made = side_of(entries["commitment"])
            right = right and made in self._parties
        converged = act_of(entries["acceptance"]) == "COMMIT"  # anybody may who is allowed to
        if not right or (not converged and (accepter == made or accepter not in self._parties)):
            self.fault("/parties", "are not those who made and accepted the offer")

    # --- the signatures over the hash, and the log

    def _signatures(self) -> None:
        signatures, of_hash = self._d.get("signatures", {}), self._said.get("did_keys", {})
        if not signatures:
            if of_hash:
                self.fault("/evidence/did_keys", "are keys of signatures that are not here")
            return
        before = len(self.report.faults)
        for did, party in zip(self._d["parties"], self._parties, strict=True):
            if did not in signatures:
                self.fault("/signatures", f"{did} has not signed")
                continue
            named = of_hash.get(party) or self._said.get("keys", {}).get(party, "")
            keys = {named, self._trusted.get(party, named)} if self._said else {self._trusted.get(party, "")}
            if all(key and signed_hash(key, self._d["agreement_hash"], signatures[did]) for key in keys):
                self._signers.setdefault(party, set()).update(keys)
            else:
                self.fault(f"/signatures/{did}", f"is not of the key of {party}")
        if len(signatures) > len(self._d["parties"]):
            self.fault("/signatures", "somebody signed who is no party")
        if len(self.report.faults) == before:
            self.report.signed = list(self._d["parties"])

    def log(self, key: str) -> None:
        """Its leaf is of this agreement, and, by the log's key, in the log."""
        p = self._d.get("log")
        if p is None:
            if key:
                self.fault("/log", "the agreement has no position in the log")
            return
        leaf = p["leaf"]
        if leaf["type"] != "agreement" or leaf["hash"] != self._d["agreement_hash"]:
            self.fault("/log/leaf", "is of something else")
        said = self._said
        made = said.get("close") or [said.get("acceptance"), *said.get("confirmations", [])][-1]
        if made and made["integrity"]["receipt"]["acceptedAt"] != leaf["at"]:
            self.fault("/log/leaf", "the agreement was made at another time")
        for name, value in leaf.get("terms", {}).items():
            if name in self._d["terms"] and rfc8785.dumps(self._d["terms"][name]) != rfc8785.dumps(value):
                self.fault("/log/leaf", f"the term {name} is another")
        if not key:
            return
        try:
            verify_inclusion(leaf, p["index"], p["proof"], p["checkpoint"], key)
            self.report.logged = True
        except ProofError as error:
            self.fault("/log", str(error))

    def demand(self) -> None:
        """Each trusted key has signed, or else the broker's has. That a party replaced its key is the broker's word."""
        for party, key in sorted(self._trusted.items()):
            signers = self._signers.get(party, set())
            if key not in signers:
                self.fault("/signatures", f"{party} has not signed with the key {key}")
            elif signers > {key} and not self._broker and not self.report.logged and party not in self._said.get("did_keys", {}):
                self.fault(f"/evidence/rotated/{party}", "another key has signed, too, and only the broker's key can show that it may")
        if self._broker and not self._trusted and not self.report.entries and not self.report.logged:
            self.fault("/evidence", "has no entries with receipts, so the broker's key proves nothing")


def _shaped(d: Any) -> JSON:
    """The document, if its members are those of an agreement."""
    if not isinstance(d, dict) or not set(d) <= _MEMBERS or not set(d.get("evidence") or {}) <= _EVIDENCE:
        raise ValueError("it has more than an agreement has")
    keys = (d.get("evidence") or {}).get
    for key in [*keys("keys", {}).values(), *keys("did_keys", {}).values(), *(k for more in keys("rotated", {}).values() for k in more)]:
        raw_key(key)
    if None in d.values():
        raise ValueError("a member is null")
    texts = [d[name] for name in _TEXT] + list(d["parties"]) + [d.get(name, "") for name in ("category", "effective_until")]
    for name in ("terms", "salts", "terms_digests"):
        if not isinstance(d[name], dict):
            raise ValueError(f"{name} is no object")
    for name in ("signatures", "salts", "terms_digests"):
        texts += d.get(name, {}).values()
    if not isinstance(d["parties"], list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("a member is no text")
    return d


def hash_of(session: str, offer: str, parties: Sequence[str], body: JSON, salt: bytes, inherited: JSON, prefix: str = "") -> str:
    """The hash of the agreement that an offer becomes.

    Args:
        offer: its id; body: what it says.
        parties: DIDs, the one of who made the offer first.
        inherited: ``ccc`` and ``regulated_obligations`` of the parties, where they have them.
        prefix: of the negotiation's id, ``neg_`` with OAP's ids.
    """
    return digest_of(core_of(session, offer, parties, body, salt, inherited, prefix))


def core_of(session: str, offer: str, parties: Sequence[str], body: JSON, salt: bytes, inherited: JSON, prefix: str = "") -> JSON:
    """What the hash of the agreement covers that an offer becomes."""
    terms = body["terms"]
    salts = salts_of(terms, salt)
    agreement: JSON = {**inherited, "parties": list(parties)}
    agreement["agreement_id"] = agreement_id_of(session, offer)
    agreement["negotiation_id"] = prefix + session
    agreement["terms_digests"] = {name: digest_of([salts[name], name, value]) for name, value in terms.items()}
    for member, its in (("category", "category"), ("effectiveFrom", "effective_from"), ("effectiveUntil", "effective_until")):
        if body.get(member):
            agreement[its] = body[member]
    return agreement


def salts_of(terms: JSON, salt: bytes) -> dict[str, str]:
    """The salt of each term, which derive from that of the offer."""
    return {name: b64(hmac.new(salt, name.encode(), hashlib.sha256).digest()) for name in terms}


def salt_in(body: JSON) -> bytes | None:
    """The salt that an offer has."""
    given = body.get("agreementSalt", "")
    return base64.urlsafe_b64decode(given + "=") if isinstance(given, str) and re.fullmatch(r"[A-Za-z0-9_-]{43}", given) else None


def did_of(agent: str) -> str:
    """The DID of a principal that has registered no other."""
    name = agent.partition("://")[2]
    return "did:web:" + (name.replace("/", "/%40", 1) if agent.startswith("human://") else name).replace("/", ":")


def body_of(e: Entry) -> JSON:
    return dict(e.sent["content"]["body"])


def act_of(e: Entry) -> str:
    return str(e.sent.get("performative"))


def id_of(e: Entry) -> str:
    """What others refer to an entry by."""
    return str(body_of(e).get({"PROPOSE": "proposalId", "COUNTER": "proposalId", "COMMIT": "commitmentId"}.get(act_of(e), "")) or e.id)


def side_of(e: Entry) -> str:
    """For whom an entry speaks."""
    return e.on_behalf_of or e.sender


def _organisation(agent: str) -> str:
    return agent.partition("://")[2].partition("/")[0]


def agreement_id_of(session: str, proposal: str) -> str:
    digest = hashlib.sha256(f"{session}:{proposal}".encode()).digest()
    return "agr_" + base64.b32encode(digest).decode().rstrip("=").translate(_CROCKFORD)[:26]


def salt_of(offer: Entry) -> bytes:
    """The salt that the offer has, or one that derives from what only the participants know."""
    if (given := salt_in(body_of(offer))) is not None:
        return given
    return hashlib.sha256(b"parley agreement salt\n" + signature_of(offer).encode() + signed_part(offer)).digest()


def signature_of(e: Entry) -> str:
    return str(e.sent["integrity"].get("signature", ""))


def signed_part(e: Entry) -> bytes:
    """What the sender signed."""
    return rfc8785.dumps({**e.sent, "integrity": {name: v for name, v in e.sent["integrity"].items() if name != "signature"}})


def digest_of(value: Any) -> str:
    return "sha256-" + hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def signed_hash(key: str, of: str, signature: str) -> bool:
    try:
        raw = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
    except (ValueError, binascii.Error):
        return False
    return b64(raw) == signature and signed_by(key, of.encode(), "ed25519:" + raw.hex())


def b64(raw: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def time_of(text: str) -> datetime | None:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", text):
        return None
    shortened = re.sub(r"(\.\d{6})\d+", r"\1", re.sub(r"\.(\d{1,5})(?!\d)", lambda m: "." + m[1].ljust(6, "0"), text))
    try:
        return datetime.fromisoformat(shortened.upper().replace("Z", "+00:00"))
    except ValueError:
        return None


__all__ = ["AgreementFault", "AgreementReport", "verify_agreement"]
