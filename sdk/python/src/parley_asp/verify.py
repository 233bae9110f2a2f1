"""Verifies that the record of a session is complete and genuine, with the broker's public key alone.

The rules and their order are those of ``parley session verify`` (PROTOCOL.md section 12)::

    faults = verify_transcript(Path("deal.jsonl").read_bytes(), "UC…")
    for fault in faults:
        print(fault)  # line 3, entry 2: hash: the entry was changed …

Without faults the broker accepted exactly these entries in this order from the session's beginning, and each
was signed with the key that was pinned for its sender. Only a missing end leaves no trace: ``head`` and
``length`` say where it should be. Of a session that was erased (``is_erased``), the lines are hashes and receipts:
what was said, by whom, and in which session can no longer be verified. It needs ``parley-asp[nats]``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rfc8785

from ._json import JSON
from ._nkey import raw_key as raw_key
from ._nkey import signed_by as signed_by
from .brokerkeys import TrustedKeys, is_time

NO_HASH = "sha256:" + "0" * 64
_MAX_LINE = 4 * (256 << 10)
_BROKERS = ("hash", "receipt", "linkedBy", "onBehalfOf", "joined")
_RECEIPT = ("acceptedAt", "broker", "signature", "state")
_ERASED = b'{"erased":'


class SealedError(ValueError):
    """What is said to be sealed is not what the digest is of."""


def open_sealed(body: JSON, parts: JSON) -> JSON:
    """The body of an act with its sealed members in the clear; ``parts`` is ``{member: {salt, value}}``.

    Raises:
        SealedError: a part is of another member, or not what was sealed.
    """
    inside = "data" in body and isinstance(body["data"], dict) and "sealed" in body["data"]  # of a ruling
    opened = dict(body["data"] if inside else body)
    digests = dict(opened.pop("sealed", {}))
    for member, part in parts.items():
        said = rfc8785.dumps([part["salt"], member, part["value"]])
        if digests.pop(member, "") != "sha256:" + hashlib.sha256(said).hexdigest():
            raise SealedError(f"the part {member} is not what was sealed")
        opened[member] = part["value"]
    if digests:
        opened["sealed"] = digests
    return {**body, "data": opened} if inside else opened


@dataclass(frozen=True)
class Fault:
    """One error in a transcript. ``line`` counts from 1, and is 0 where there is none."""

    line: int
    sequence: int
    rule: str
    why: str

    def __str__(self) -> str:
        return f"line {self.line}, entry {self.sequence}: {self.rule}: {self.why}"


def verify_transcript(
    data: bytes,
    broker: str,
    *,
    broker_keys: Sequence[Mapping[str, Any]] | None = None,
    session: str = "",
    head: str = "",
    length: int = 0,
    allow_unsigned: bool = False,
) -> list[Fault]:
    """The faults of an exported transcript, in the order of its lines.

    Args:
        broker: the broker's public key (``U…``).
        broker_keys: the history of its keys, where it has replaced one (``parley_asp.brokerkeys``).
        session, head, length: what the caller knows of it from elsewhere; empty is not checked.
        allow_unsigned: take unsigned entries of members that have a key, as a broker under ``--dev`` does.

    Raises:
        BrokerKeysError: the history is not genuine, or does not have the broker's key.
    """
    v = Verifier(broker, session, allow_unsigned, TrustedKeys(broker, broker_keys))
    lines = data.split(b"\n")
    for line in lines[:-1] if lines[-1] == b"" else lines:
        v.add(line)
    return v.end(head, length)


def is_erased(data: bytes) -> bool:
    """Whether an exported transcript is what is left of a session that was erased."""
    return data.startswith(_ERASED)


class Unreadable(Exception):
    def __init__(self, rule: str, why: str) -> None:
        super().__init__(why)
        self.rule = rule


@dataclass
class Entry:
    sent: JSON  # as its sender made it
    id: str
    session: str
    sender: str
    sequence: int
    previous: str
    hash: str
    recomputed: str
    joined: list[JSON]
    receipt: JSON
    on_behalf_of: str
    canonical: bool


class Verifier:
    """Checks a transcript entry by entry."""

    def __init__(self, broker: str, session: str = "", allow_unsigned: bool = False, keys: TrustedKeys | None = None) -> None:
        self._keys = keys or TrustedKeys(broker)
        self._broker, self._session, self._allow_unsigned = broker, session, allow_unsigned
        self._faults: list[Fault] = []
        self._seen: dict[str, int] = {}
        self._pins: dict[str, tuple[str, bool]] = {}  # key, and whether the entry that pinned it is not genuine
        self._lines = 0
        self._next, self._previous = 0, NO_HASH  # after the last genuine entry
        self._doubtful = 0  # lines since then, which are not genuine and may or may not have a position
        self._accepted = ""
        self._lost = False  # an entry is missing or not genuine, so its pins are unknown
        self._erased: bool | None = None  # whether the first line is, once there is one

    def add(self, line: bytes) -> Entry | None:
        """Check the next entry, without its line feed. It is returned if it can be read."""
        self._lines += 1
        try:
            if is_erased(line):
                self._add_erased(read_erased(line))
                return None
            e = read_entry(line)
        except (Unreadable, ValueError) as error:
            rule = error.rule if isinstance(error, Unreadable) else "json"
            self._fault(self._next + self._doubtful, rule, str(error))
            self._doubtful += 1
            self._lost = True
            return None
        if not e.canonical:
            self._fault(e.sequence, "canonical", "the line is not the canonical form (RFC 8785) of its JSON")
        genuine = self._genuine(e)
        self._same_kind(e.sequence, False)
        in_place = self._position(e, genuine)
        self._times(e, in_place)
        if e.id in self._seen:
            self._fault(e.sequence, "duplicate", f"message {e.id} is already in entry {self._seen[e.id]}")
        elif genuine:
            self._seen[e.id] = e.sequence
        self._sender(e, genuine, in_place)
        return e

    def _add_erased(self, e: Entry) -> None:
        receipted = self._receipted(e)
        self._lost = True  # nobody knows who joined
        self._same_kind(e.sequence, True)
        self._times(e, self._position(e, receipted))

    def _same_kind(self, sequence: int, erased: bool) -> None:
        if self._erased is None:
            self._erased = erased
        if self._erased != erased:
            self._fault(sequence, "erased", f"a transcript is erased whole or not at all; this line is {'erased' if erased else 'not'}")

    def end(self, head: str = "", length: int = 0) -> list[Fault]:
        """All faults, with those of the transcript as a whole."""
        if self._lines == 0:
            self._fault(self._next, "length", "there is no entry")
        elif length and self._lines != length:
            self._fault(self._next, "length", f"there are {self._lines} entries; {length} are expected")
        elif head and self._previous != head and self._doubtful == 0:
            self._fault(self._next, "head", f"the transcript ends with {self._previous}; {head} is expected")
        return self._faults

    def _fault(self, sequence: int, rule: str, why: str) -> None:
        self._faults.append(Fault(self._lines, sequence, rule, why))

    def _genuine(self, e: Entry) -> bool:
        """Whether the broker accepted exactly this entry in this session. Then its sequence number is true."""
        unchanged = e.recomputed == e.hash
        receipted = self._keys.receipted(e.hash, e.receipt)
        if not self._session and unchanged and receipted:
            self._session = e.session
        if other := self._other(e):
            self._fault(e.sequence, "session", f"the entry is of session {e.session}; the transcript, of {self._session}")
        if not unchanged:
            self._fault(e.sequence, "hash", f"the entry was changed: its hash is {e.recomputed}, not {e.hash} as it says")
        self._receipted(e)
        return unchanged and receipted and not other

    def _receipted(self, e: Entry) -> bool:
        receipted = self._keys.receipted(e.hash, e.receipt)
        if e.receipt["broker"] not in self._keys:
            self._fault(e.sequence, "receipt", f"the receipt is not by the broker {self._broker}")
        elif not receipted:
            self._fault(e.sequence, "receipt", "the broker did not sign that it accepted this hash at this time into this state")
        return receipted

    def _other(self, e: Entry) -> bool:
        return bool(self._session) and e.session != self._session

    def _position(self, e: Entry, genuine: bool) -> bool:
        """Follow genuine entries, whose sequence numbers are true, so one that is not means one fault."""
        at, first, here = e.sequence, self._next, self._next + self._doubtful
        if not genuine and at != here:
            self._fault(at, "sequence", f"its sequenceNumber is {at}; entry {here} belongs here")
        elif at > here:
            self._fault(at, "sequence", f"entries {here} to {at - 1} are missing before it")
            self._lost = True
        elif genuine and at < first:
            self._fault(at, "sequence", f"entry {at} is repeated or out of order; entry {here} belongs here")
        elif at == first and (genuine or self._doubtful == 0) and e.previous != self._previous:
            self._fault(at, "previous", f"it does not link to the previous entry, whose hash is {self._previous}")
        if genuine and at >= first:
            self._next, self._previous, self._doubtful = at + 1, e.hash, 0
            return True
        if not genuine:
            self._doubtful += 1
            self._lost = True
        return False

    def _times(self, e: Entry, in_place: bool) -> None:
        at = e.receipt["acceptedAt"]  # in the one form that sorts
        if not is_time(at):
            self._fault(e.sequence, "time", f"acceptedAt is {at!r}; want UTC with nine digits after the second")
        elif at < self._accepted:
            self._fault(e.sequence, "time", f"it was accepted at {at}, earlier than the previous entry")
        elif in_place:
            self._accepted = at

    def _sender(self, e: Entry, genuine: bool, in_place: bool) -> None:
        """Verify the sender's signature with the key that was last pinned for it, in this entry or an earlier one."""
        if not self._other(e):
            for m in e.joined:  # one out of order does not replace a newer key
                if not (m["agentId"] in self._pins and genuine and not in_place):
                    self._pins[m["agentId"]] = (m.get("key") or "", not genuine)
        own = dict(e.sent["integrity"])
        signature = own.pop("signature", "")
        said = rfc8785.dumps({**e.sent, "integrity": own})
        if e.sender.startswith("broker://"):
            key = e.sender.removeprefix("broker://")
            if key not in self._keys or (genuine and key != e.receipt["broker"]):
                self._fault(e.sequence, "broker", f"{e.sender} is not the broker that kept this transcript")
            elif not signed_by(key, said, signature):
                self._fault(e.sequence, "signature", "the broker did not sign its own entry")
            return
        if e.sender not in self._pins:
            if not self._lost:
                self._fault(e.sequence, "pinned", f"{e.sender} has not joined the session")
            return
        key, doubtful = self._pins[e.sender]
        if not key or (not signature and self._allow_unsigned) or (doubtful and genuine):
            return  # it joined without a key, under --dev; or its pin is already a fault
        if not signed_by(key, said, signature):
            self._fault(e.sequence, "signature", f"{e.sender} did not sign this with the key that it joined with, {key}")


def read_entry(line: bytes) -> Entry:
    """Read one delivered envelope."""
    if len(line) > _MAX_LINE:
        raise Unreadable("json", "the line is too large")
    e = _object(
        json.loads(line.decode("utf-8"), object_pairs_hook=members_once, parse_int=integer_of, parse_constant=no_constant), "the envelope"
    )
    integrity = _object(e.get("integrity"), "integrity")
    receipt = integrity.get("receipt")
    if not isinstance(receipt, dict) or sorted(receipt) != list(_RECEIPT) or not all(isinstance(v, str) for v in receipt.values()):
        raise Unreadable("receipt", "a receipt has acceptedAt, broker, signature and state, and nothing else")
    linked_by = integrity.get("linkedBy")
    if linked_by not in ("sender", "broker"):
        raise Unreadable("json", "integrity.linkedBy is sender or broker")
    _object(_object(e.get("content"), "content").get("body"), "content.body")
    sequence, joined = e.get("sequenceNumber"), integrity.get("joined", [])
    if type(sequence) is not int or sequence < 0:
        raise Unreadable("json", "sequenceNumber is a whole number from 0")
    if not isinstance(joined, list):
        raise Unreadable("json", "integrity.joined is a list")
    sender = _text(_object(e.get("sender"), "sender").get("agentId"), "sender.agentId")
    hashed = {**e, "integrity": {name: v for name, v in integrity.items() if name not in ("hash", "receipt")}}
    own = {name: v for name, v in integrity.items() if name not in _BROKERS}
    sent = {**e, "integrity": own}
    if linked_by == "broker":
        sent.pop("sequenceNumber")
        own.pop("previousHash", None)
    return Entry(
        sent, _text(e.get("messageId"), "messageId"), _text(e.get("sessionId"), "sessionId"), sender, sequence,
        _text(integrity.get("previousHash"), "integrity.previousHash"), _text(integrity.get("hash"), "integrity.hash"),
        "sha256:" + hashlib.sha256(rfc8785.dumps(hashed)).hexdigest(), joined, receipt,
        str(integrity.get("onBehalfOf", "")), rfc8785.dumps(e) == line,
    )  # fmt: skip


def read_erased(line: bytes) -> Entry:
    """Read what is left of an entry whose session was erased: its hash, link, position and receipt, and nothing else."""
    if len(line) > _MAX_LINE:
        raise Unreadable("json", "the line is too large")
    e = _object(json.loads(line.decode("utf-8"), object_pairs_hook=members_once, parse_constant=no_constant).get("erased"), "erased")
    receipt, sequence = _object(e.get("receipt"), "receipt"), e.get("sequence")
    if type(sequence) is not int or not 0 <= sequence < 2**53 or not all(isinstance(receipt.get(name), str) for name in _RECEIPT):
        raise Unreadable("json", "the line is not what is left of an erased entry")
    left: JSON = {
        "hash": _text(e.get("hash"), "hash"), "previousHash": _text(e.get("previousHash"), "previousHash"),
        "receipt": {name: receipt[name] for name in _RECEIPT}, "sequence": sequence,
    }  # fmt: skip
    if rfc8785.dumps({"erased": left}) != line:
        raise Unreadable("json", "the line is not what is left of an erased entry")
    return Entry({}, "", "", "", sequence, left["previousHash"], left["hash"], left["hash"], [], left["receipt"], "", True)


def members_once(pairs: list[tuple[str, Any]]) -> JSON:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Unreadable("json", "an object has a member twice")
    return members


def integer_of(digits: str) -> int | float:
    """An integer beyond those that every reader has is the double that RFC 8785 writes."""
    value = int(digits)
    return value if abs(value) < 2**53 else float(value)


def no_constant(name: str) -> Any:
    raise Unreadable("json", f"{name} is no number of JSON")


def _object(value: Any, what: str) -> JSON:
    if not isinstance(value, dict):
        raise Unreadable("json", f"{what} is no object")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise Unreadable("json", f"{what} is missing")
    return value


__all__ = ["Fault", "SealedError", "is_erased", "open_sealed", "verify_transcript"]
