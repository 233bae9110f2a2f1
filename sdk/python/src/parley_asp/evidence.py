"""Verifies the evidence of a session offline: what was agreed, and what has become of it.

The rules are those of ``parley evidence verify`` (PROTOCOL.md section 8, evidence)::

    report = verify_evidence(Path("evidence.json").read_bytes(), broker="UC…", log_key="parley.example/log+…")
    assert not report.faults
    for obligation in report.bundle["obligations"]:
        print(obligation["action"], obligation["status"])  # not proven if /obligations/N is in report.claimed

Without faults the transcript is genuine, and leads to the agreements, obligations and disputes that the bundle
says. Of a redacted bundle the chain of its entries and what is there are verified; what it says of obligations
and disputes is only claimed. It needs ``parley-asp[nats]``.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import rfc8785

from ._json import JSON, dumps
from ._made import document_of
from ._outcome import Outcome
from .agreement import AgreementFault, body_of, signature_of, signed_part, verify_trusting
from .brokerkeys import BrokerKeysError, TrustedKeys, trusted_by
from .publiclog import ProofError, verify_inclusion
from .receipt import receipt_key, verify_receipt
from .verify import (
    NO_HASH,
    SealedError,
    Unreadable,
    Verifier,
    integer_of,
    members_once,
    no_constant,
    open_sealed,
    read_entry,
    signed_by,
)

_FORMAT = "parley-evidence/1"
_TEXT, _LIST, _OBJECT = str, list, dict
_BUNDLE = {"format": _TEXT, "sessionId": _TEXT, "broker": _TEXT, "head": _TEXT, "state": _TEXT, "agreements": _LIST, "obligations": _LIST,
           "disputes": _LIST, "transcript": _LIST}  # fmt: skip
_OBLIGATION = {"commitmentId": _TEXT, "obligation": _TEXT, "party": _TEXT, "action": _TEXT, "status": _TEXT, "entries": _LIST}
_DISPUTE = {"disputeId": _TEXT, "by": _TEXT, "ground": _TEXT, "status": _TEXT, "entries": _LIST}
_PROOF = {"index": int, "leaf": _OBJECT, "checkpoint": _TEXT, "proof": _LIST}


@dataclass
class EvidenceReport:
    """What was verified of a bundle of evidence. Without faults it is what happened, but for what is claimed."""

    bundle: JSON = field(default_factory=dict)
    faults: list[AgreementFault] = field(default_factory=list)
    logged: int = 0  # agreements, and the session's end, that are in the public log, by the log's key
    withheld: int = 0  # entries of which only the hash and the receipt are there
    claimed: list[str] = field(default_factory=list)  # JSON Pointers to obligations and disputes that only the bundle says


def verify_evidence(
    data: bytes | str | Mapping[str, Any],
    *,
    broker: str = "",
    broker_keys: Sequence[Mapping[str, Any]] | None = None,
    log_key: str = "",
    receipts_key: str = "",
    keys: Mapping[str, str] | None = None,
    allow_unsigned: bool = False,
) -> EvidenceReport:
    """Check a bundle with what you trust. What is not given is taken from the bundle, and proves less.

    Args:
        broker: the public key of the broker whose receipts the entries have.
        broker_keys: the history of its keys (``parley_asp.brokerkeys``), instead of the one that the bundle may have.
        log_key: of the public log, as ``parley log key`` prints it.
        receipts_key: of COSE Receipts, as PEM (``parley log key --receipts``).
        keys: of parties, by URI, that you know from elsewhere.
        allow_unsigned: take entries of a broker under ``--dev``.

    Raises:
        BrokerKeysError: the given history is not genuine, or does not have the broker's key.
    """
    check = _Check(
        broker,
        trusted_by(broker, broker_keys) if broker_keys is not None else None,
        log_key,
        receipts_key,
        dict(keys or {}),
        allow_unsigned,
    )
    try:
        text = dumps(data) if isinstance(data, Mapping) else data
        read = json.loads(text, object_pairs_hook=members_once, parse_int=integer_of, parse_constant=no_constant)
        check.bundle(json.loads(rfc8785.dumps(_shaped(read))))
    except (Unreadable, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        check.fault("", f"is no bundle of evidence: {error}")
    return check.report


class _Check:
    def __init__(
        self, broker: str, trusted: TrustedKeys | None, log_key: str, receipts_key: str, keys: dict[str, str], unsigned: bool
    ) -> None:
        self.report = EvidenceReport()
        self._trusted = trusted
        self._broker, self._log_key, self._receipts_key, self._keys, self._unsigned = broker, log_key, receipts_key, keys, unsigned

    def fault(self, member: str, why: str) -> None:
        self.report.faults.append(AgreementFault(member, why))

    def bundle(self, b: JSON) -> None:
        self.report.bundle = self._b = b
        self._lines = [rfc8785.dumps(e) for e in b["transcript"]]
        self._trust()
        if b["broker"] not in self._by:
            self.fault("/broker", f"is {b['broker']}, not the broker {self._broker}")
        if any(_withheld(line) for line in self._lines):
            if b.get("sealed"):
                self.fault("/sealed", "goes with a whole transcript only")
            self._chain()
            self.report.claimed = [f"/{kind}/{i}" for kind in ("obligations", "disputes") for i in range(len(b[kind]))]
        else:
            self._replayed()
        for i, document in enumerate(b["agreements"]):
            report = verify_trusting(document, self._by, log_key=self._log_key, keys=self._keys, allow_unsigned=self._unsigned)
            for f in report.faults:
                self.fault(f"/agreements/{i}{f.member}", f.why)
            self.report.logged += report.logged
        self._ended()
        self._receipts()

    def _trust(self) -> None:
        """Which keys the receipts may have: by the history that was given, or else by the bundle's own."""
        self._broker = self._broker or self._b["broker"]
        self._by = self._trusted or TrustedKeys(self._broker)
        if self._trusted is None and "brokerKeys" in self._b:
            try:
                self._by = TrustedKeys(self._broker, self._b["brokerKeys"])
            except BrokerKeysError as error:
                self.fault("/brokerKeys", str(error))

    # --- the transcript

    def _replayed(self) -> None:
        """The transcript is whole, and leads to what the bundle says."""
        b = self._b
        v = Verifier(self._broker, b["sessionId"], self._unsigned, self._by)
        entries = [e for line in self._lines if (e := v.add(line)) is not None]
        found = v.end(b["head"], len(self._lines))
        for f in found:
            self.fault(f"/transcript/{f.line - 1}", str(f))
        if found:
            return
        outcome = Outcome()
        try:
            for e in entries:
                open_sealed(body_of(e), b.get("sealed", {}).get(e.id, {}))
                outcome.add(e)
            made = [document_of(outcome, a, entries, b["transcript"]) for a in outcome.agreements]
        except (SealedError, ValueError, TypeError, KeyError, AttributeError, IndexError, StopIteration) as error:
            self.fault("/transcript", f"cannot be followed: {error!r}")
            return
        for id in sorted(b.get("sealed", {}).keys() - {e.id for e in entries}):
            self.fault(f"/sealed/{id}", "is of no entry that is here")
        state = entries[-1].receipt["state"]
        if b["state"] != state:
            self.fault("/state", f"is {b['state']}; the transcript leads to {state}")
        self._same("/agreements", [{n: v for n, v in d.items() if n != "log"} for d in b["agreements"]], made)
        self._same("/obligations", b["obligations"], outcome.obligations)
        self._same("/disputes", b["disputes"], outcome.disputes)

    def _same(self, member: str, says: list[JSON], made: list[JSON]) -> None:
        if len(says) != len(made):
            self.fault(member, f"has {len(says)} items; the transcript makes {len(made)}")
        for i, (one, other) in enumerate(zip(says, made, strict=False)):
            if rfc8785.dumps(one) != rfc8785.dumps(other):
                self.fault(f"{member}/{i}", "is not what the transcript makes")

    def _chain(self) -> None:
        """Each entry follows the one before, and the broker accepted it. Who signed is checked of those that are there."""
        head, keys, before = NO_HASH, dict[str, str](), ""
        for i, line in enumerate(self._lines):
            at = f"/transcript/{i}"
            if _withheld(line):
                withheld = self._b["transcript"][i]["withheld"]
                _exact(withheld, {"hash": _TEXT, "receipt": _OBJECT})
                _exact(withheld["receipt"], dict.fromkeys(("acceptedAt", "broker", "signature", "state"), _TEXT))
                receipt, hashed = withheld["receipt"], withheld["hash"]
                self.report.withheld += 1
            else:
                try:
                    e = read_entry(line)
                except (Unreadable, ValueError) as error:
                    self.fault(at, str(error))
                    return
                receipt, hashed = e.receipt, e.hash
                if (e.previous, e.sequence, e.recomputed, e.session) != (head, i, e.hash, self._b["sessionId"]):
                    self.fault(at, "does not follow the entry before")
                keys.update({m["agentId"]: m.get("key", "") for m in e.joined})
                key, signature = keys.get(e.sender), signature_of(e)
                if key and signature and not signed_by(key, signed_part(e), signature):
                    self.fault(at, f"{e.sender} did not sign it")
            if not self._by.receipted(hashed, receipt):
                self.fault(at, "the broker did not sign that it accepted this hash")
            if receipt["acceptedAt"] < before:
                self.fault(at, "was accepted before the entry before it")
            head, before = hashed, receipt["acceptedAt"]
        if head != self._b["head"]:
            self.fault("/head", f"is {self._b['head']}; the transcript ends with {head}")
        if self._last()["state"] != self._b["state"]:
            self.fault("/state", f"is {self._b['state']}; the receipt of the last entry says {self._last()['state']}")

    def _last(self) -> JSON:
        """The receipt of the last entry."""
        last: JSON = self._b["transcript"][-1]
        return dict((last.get("withheld") or last["integrity"])["receipt"])

    # --- the public log

    def _ended(self) -> None:
        ended = self._b.get("ended")
        if ended is None:
            return
        if ended["leaf"] != {"type": "session", "hash": self._b["head"], "at": self._last()["acceptedAt"]}:
            self.fault("/ended/leaf", "is not the leaf of this session's end")
        if not self._log_key:
            return
        try:
            verify_inclusion(ended["leaf"], ended["index"], ended["proof"], ended["checkpoint"], self._log_key)
            self.report.logged += 1
        except ProofError as error:
            self.fault("/ended", str(error))

    def _receipts(self) -> None:
        b, documents = self._b, {d["agreement_id"]: d.get("log") for d in self._b["agreements"]}
        receipts = b.get("receipts")
        if receipts is None:
            if "ended" in b or any(documents.values()):
                self.fault("/receipts", "are missing")
            return
        try:
            key = receipt_key(receipts["key"])
            if self._receipts_key and receipt_key(self._receipts_key) != key:
                self.fault("/receipts/key", "is another key than the one given")
        except ValueError as error:
            self.fault("/receipts/key", str(error))
            return
        of = receipts.get("agreements", {})
        for name, proof in documents.items():
            self._receipt(f"/receipts/agreements/{name}", proof, of.get(name))
        if not set(of) <= set(documents):
            self.fault("/receipts/agreements", "has receipts of other agreements")
        self._receipt("/receipts/session", b.get("ended"), receipts.get("session"))

    def _receipt(self, at: str, proof: JSON | None, receipt: str | None) -> None:
        if (proof is None) != (receipt is None):
            self.fault(at, "a receipt goes with a position in the public log")
        elif proof is not None and receipt is not None:
            try:
                raw = base64.b64decode(receipt, validate=True)
                if base64.b64encode(raw).decode() != receipt:
                    raise ProofError("the receipt is not in base64")
                verify_receipt(raw, self._b["receipts"]["key"], proof["leaf"], proof["index"], proof["checkpoint"])
            except (ProofError, binascii.Error) as error:
                self.fault(at, str(error))


# --- the form


def _shaped(b: Any) -> JSON:
    """The bundle, if it has the members of one, and no others."""
    _exact(b, _BUNDLE, sealed=_OBJECT, ended=_OBJECT, receipts=_OBJECT, brokerKeys=_LIST)
    if b["format"] != _FORMAT:
        raise ValueError(f"its format is {b['format']!r}, not {_FORMAT!r}")
    if not b["transcript"]:
        raise ValueError("the transcript is empty")
    for o in b["obligations"]:
        _exact(o, _OBLIGATION, breaches=int)
        if o.get("breaches") == 0:
            raise ValueError("breaches is 0")
    for d in b["disputes"]:
        _exact(d, _DISPUTE)
    for n in (n for one in (*b["obligations"], *b["disputes"]) for n in one["entries"]):
        if type(n) is not int or n < 0:
            raise ValueError("an entry is no number of one")
    for proof in [b.get("ended"), *(d.get("log") for d in b["agreements"])]:
        if proof is not None:
            _exact(proof, _PROOF)
    for parts in b.get("sealed", {}).values():
        for part in parts.values():
            if set(part) != {"salt", "value"} or not isinstance(part["salt"], str):
                raise ValueError("a part of what is sealed is a salt and a value")
    if "receipts" in b:
        _exact(b["receipts"], {"key": _TEXT}, agreements=_OBJECT, session=_TEXT)
    return dict(b)


def _exact(value: Any, members: Mapping[str, type], **optional: type) -> None:
    if not isinstance(value, dict) or not set(members) <= set(value) <= {*members, *optional}:
        raise ValueError(f"it has more or less than {', '.join(members)}")
    for name, is_of in {**members, **optional}.items():
        if name in value and type(value[name]) is not is_of:
            raise ValueError(f"{name} is not of its type")


def _withheld(line: bytes) -> bool:
    return line.startswith(b'{"withheld":')
