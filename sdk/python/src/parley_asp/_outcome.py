"""Reads what became of a session out of its entries: the agreements, the obligations and the disputes.

The entries are taken to be genuine, so that the broker accepted each by the rules: only what they do is told here,
and whether the time for something had passed is what the broker's own entries say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ._json import JSON
from .agreement import act_of, body_of, id_of, side_of, time_of
from .verify import Entry

_COMMITS = "asp/1"  # where an accepted proposal binds nobody until a COMMIT, or a CLOSE, carries it out
_SINCE = {_COMMITS: 1, "binding/1": 1, "bilateral/1": 6}  # the format since which an ACCEPT makes, or leads to, an agreement
_MOST = 1000  # obligations
_PRINCIPAL = re.compile(r"(agent://[a-z0-9._-]+(/[A-Za-z0-9._-]+)+|human://[a-z0-9._-]+/[A-Za-z0-9._-]+)")


@dataclass
class Offer:
    """What an ACCEPT may name: an invitation, a proposal, a commitment, or an amendment of one."""

    id: str
    kind: str
    sequence: int
    side: str
    addressed: bool
    about: str  # the proposal or commitment that it carries out, counters or amends
    body: JSON
    open: bool = True
    accepted: list[str] = field(default_factory=list)


@dataclass
class Agreement:
    """Who agreed, and the entries by which; 0 is none."""

    name: str
    proposal: str
    parties: list[str]  # who made the offer comes first
    offer: int
    acceptance: int
    commitment: str = ""
    commit: int = 0
    close: int = 0
    confirmed: int = 0
    signatures: dict[str, str] = field(default_factory=dict)  # made after the acceptance


@dataclass
class Commitment:
    id: str
    parties: list[str]
    entries: list[int]


@dataclass
class Delivery:
    id: str
    quantity: Fraction | None
    late: bool


@dataclass
class Obligation:
    commitment: str
    id: str
    party: str
    action: str
    holds: bool  # keeps its session open
    remains: Fraction | None
    accepted: Fraction | None = None
    delivery: Delivery | None = None
    breached: bool = False
    breaches: int = 0
    disputes: int = 0
    ended: str = ""

    @property
    def status(self) -> str:
        if self.disputes > 0:
            return "disputed"
        if self.ended:
            return self.ended
        if self.delivery is not None:
            return "asserted"
        return "breached" if self.breached else "partial" if self.accepted is not None else "due"


@dataclass
class Dispute:
    id: str
    by: str
    ground: str
    entry: int
    entries: list[int]
    commitment: str = ""
    obligation: str = ""
    status: str = "open"


class Outcome:
    """What the entries so far have led to."""

    def __init__(self) -> None:
        self.agreements: list[Agreement] = []
        self.order: list[str] = []  # who came, the principals first
        self.pinned: dict[str, JSON] = {}  # of each, as it came
        self.keys: dict[str, list[str]] = {}  # all that were pinned for each, the oldest first
        self.principals: list[str] = []
        self.policy: JSON = {}  # of the invitation in force
        self.mode = ""
        self._last: dict[str, JSON] = {}
        self._format = 0
        self._offers: dict[str, Offer] = {}
        self._terms: list[Agreement] = []  # accepted proposals that bind nobody yet
        self._slots: dict[str, str] = {}  # in convergent/1: which offer each accepts
        self._signed: set[str] = set()  # in binding/1: who has signed the offer
        self._sure = False  # people have been asked to confirm
        self._open = self._accepted = 0  # commitments
        self._executing = False
        self._carried: list[Commitment] = []
        self._obligations: dict[tuple[str, str], Obligation] = {}
        self._deliveries: dict[str, tuple[str, str]] = {}
        self._about: dict[int, tuple[str, str]] = {}  # the obligation that an entry is about
        self._leaving: list[str] = []
        self._disputes: dict[str, Dispute] = {}
        self._remedies: dict[str, str] = {}
        self._hashes: dict[str, int] = {}

    @property
    def obligations(self) -> list[JSON]:
        """As a bundle has them."""
        found = []
        for key, o in self._obligations.items():
            entries = {n for c in self._carried if c.id == o.commitment for n in c.entries}
            entries |= {at for at, about in self._about.items() if about == key}
            one: JSON = {"commitmentId": o.commitment, "obligation": o.id, "party": o.party, "action": o.action, "status": o.status}
            if o.breaches:
                one["breaches"] = o.breaches
            found.append({**one, "entries": sorted(entries - {0})})
        return found

    @property
    def disputes(self) -> list[JSON]:
        """As a bundle has them."""
        return [
            {"disputeId": d.id, "by": d.by, "ground": d.ground, "status": d.status, "entries": sorted({d.entry, *d.entries})}
            for d in self._disputes.values()
        ]

    def add(self, e: Entry) -> None:
        """Take in the next entry."""
        self._pin(e)
        self._hashes[e.hash] = e.sequence
        body, act, side = body_of(e), act_of(e), side_of(e)
        about = str(body.get("referenceId") or "")
        if e.sender.startswith("broker://"):
            if act == "INFORM":
                self._happened(e.sequence, body["data"])
            return
        if act in ("PROPOSE", "COUNTER"):
            self._offered(e, body, side, about)
        elif act == "COMMIT":
            self._offers[id_of(e)] = Offer(id_of(e), "commitment", e.sequence, side, "recipient" in e.sent, about, body)
            self._open += 1
            if self.mode == "convergent/1":
                self._converged(e, body, about)
        elif act == "ACCEPT":
            self._accept(e, body, side, about)
        elif act in ("REJECT", "WITHDRAW"):
            self._refused(e, act, side, about)
        elif act == "INFORM":
            self._informed(e, body, side)
        elif act == "CLOSE":
            self._closed(e, body, side)
        self._execute(e)

    def _pin(self, e: Entry) -> None:
        for m in e.joined:
            who = m["agentId"]
            if m["kind"] == "broker":
                self._format = m["policy"].get("format", 1) if "policy" in m else self._format
                continue
            if m["authority"] == "arbiter":
                continue
            before = self._last.get(who, {})
            if who not in self.pinned:
                self.pinned[who] = m
                self.order.append(who)
                if e.sequence == 0 and m["authority"] == "principal":
                    self.principals.append(who)
            self.keys.setdefault(who, []).extend(m[n] for n in ("key", "didKey") if m.get(n) and m[n] != before.get(n))
            self._last[who] = m

    # --- negotiation

    def _offered(self, e: Entry, body: JSON, side: str, about: str) -> None:
        o = Offer(id_of(e), "proposal", e.sequence, side, "recipient" in e.sent, about, body)
        countered = self._offers.get(about) if act_of(e) == "COUNTER" else None
        if not self._offers or (countered is not None and countered.kind == "invitation"):
            o.kind = "invitation"
            self.mode, self.policy = body["terms"].get("mode") or _COMMITS, body["terms"].get("policy") or {}
        elif self._executing:
            o.kind = "amendment"
        elif countered is not None and countered.kind == "commitment":
            self._ends(countered)
        if self.mode == "binding/1":
            self._signed = {side} if body.get("agreementSignature") else set()
        self._offers[o.id] = o

    def _ends(self, commitment: Offer, accepted: bool = False) -> None:
        if commitment.open:
            commitment.open = False
            self._open -= 1
            self._accepted += accepted

    def _accept(self, e: Entry, body: JSON, side: str, about: str) -> None:
        o = self._offers.get(about)
        if o is None:
            if self._executing and about in self._deliveries:
                self._take(e.sequence, self._obligations[self._deliveries[about]], _exactly(body.get("quantity")), "fulfilled")
            elif self._executing and about in self._remedies:
                self._decided(e.sequence, self._disputes[self._remedies[about]], "agreed")
        elif o.kind == "proposal":
            self._agreed(e, body, side, o)
        elif o.kind != "invitation":
            o.accepted.append(side)
            if len(o.accepted) >= self._needed(o):
                self._all_accepted(e, o)

    def _agreed(self, e: Entry, body: JSON, side: str, o: Offer) -> None:
        if self.mode == "convergent/1":
            self._slots[side] = o.id
            return
        if self.mode == "binding/1" and body.get("agreementSignature"):
            self._signed.add(side)
        if o.side == side or self._format < _SINCE.get(self.mode, 1):
            return
        made = Agreement(o.id, o.id, [o.side, side], o.sequence, e.sequence)
        self._sure = self.mode == "bilateral/1" and self.policy.get("confirm") is True
        if self._sure or (self.mode == _COMMITS and self._format >= 4):
            self._terms.append(made)
        else:
            self.agreements.append(made)

    def _needed(self, o: Offer) -> int:
        if o.kind == "amendment":
            return len(self._commitment(o.about).parties) - 1
        return 1 if o.addressed else len(self.principals) - 1

    def _all_accepted(self, e: Entry, o: Offer) -> None:
        if o.kind == "amendment":
            for promised in promises(o.body["terms"]):
                self._oblige(o.about, promised)
                self._about[e.sequence] = (o.about, promised["id"])
            self._leaving = []
            return
        self._ends(o, accepted=True)
        if self.mode != _COMMITS or self._format < 4 or o.body.get("outcome") == "rejected":
            return
        made = Agreement(o.id, "", [o.side], o.sequence, e.sequence, o.id)
        before: list[str] = []
        if (p := self._offers.get(o.about)) is not None:
            made.proposal, made.offer, made.commit = p.id, p.sequence, o.sequence
            before = next((t.parties for t in self._terms if t.name == p.id), [p.side])
            if all(a.name != p.id for a in self.agreements):
                made.name = p.id
        made.parties = _once([*before, o.side, *(a for a in self.order if a in o.accepted)])
        self.agreements.append(made)

    def _converged(self, e: Entry, body: JSON, about: str) -> None:
        """A COMMIT says what all have accepted."""
        if body.get("outcome") != "rejected" and (o := self._offers.get(about)) is not None:
            accepters = [a for a in self.order if self._slots.get(a) == about]
            self.agreements.append(Agreement(about, about, _once([o.side, *accepters]), o.sequence, e.sequence))

    def _refused(self, e: Entry, act: str, side: str, about: str) -> None:
        o = self._offers.get(about)
        if o is None:
            if act == "REJECT" and self._executing and about in self._deliveries:
                self._due_again(e.sequence, self._deliveries[about])
        elif o.kind == "commitment":
            self._ends(o)
        elif act == "REJECT" and self._slots.get(side) == about:
            del self._slots[side]

    def _closed(self, e: Entry, body: JSON, side: str) -> None:
        owed = [o for o in self._obligations.values() if not o.ended and o.holds]
        if owed:
            self._leaving.append(side)
            if not {p for c in self._carried for p in c.parties} <= set(self._leaving):
                return
            for o in owed:
                o.ended, o.delivery = "released", None
        if self.mode == _COMMITS and (body.get("outcome") or "completed") == "completed" and not self._accepted and not self._open:
            for a in self._terms:
                a.close = e.sequence
                self.agreements.append(a)

    # --- execution

    def _execute(self, e: Entry) -> None:
        """Begin to carry out what was agreed, once the entry has made the last of it."""
        waits = self.mode == "binding/1" and len(self._signed) < 2
        if self._executing or self._format < 7 or e.receipt["state"] != "EXECUTING" or waits:
            return
        self._executing = True
        for a in self.agreements:
            made = self._offers.get(a.commitment or (id_of(e) if act_of(e) == "COMMIT" else ""))
            promised = identified((made.body.get("terms") or {}).get("obligations") or []) if made is not None else []
            c = Commitment(a.proposal, a.parties, [a.offer, a.commit, a.acceptance, a.close, a.confirmed])
            if made is not None and promised:
                c.id = made.id
            elif a.proposal in self._offers:
                promised = promises(self._offers[a.proposal].body.get("terms"))
            self._carried.append(c)
            for p in promised:
                self._oblige(c.id, p)

    def _commitment(self, name: str) -> Commitment:
        return next(c for c in self._carried if c.id == name)

    def _oblige(self, commitment: str, promised: JSON) -> None:
        """Enter an obligation, in place of one that it amends."""
        holds = "deadline" in promised or "quantity" in promised or bool(promised.get("verificationMethod"))
        o = Obligation(commitment, promised["id"], promised["party"], promised["action"], holds, _exactly(promised.get("quantity")))
        if (was := self._obligations.get((commitment, o.id))) is not None:
            o.breaches, o.disputes, o.accepted = was.breaches, was.disputes, was.accepted
        self._obligations[commitment, o.id] = o

    def _informed(self, e: Entry, body: JSON, side: str) -> None:
        kind, data = body.get("type") or body.get("informType"), body.get("data")
        if not isinstance(data, dict):
            return
        if kind == "resolution" and data.get("escalationId"):
            if self._sure and data.get("decision") == "approved" and e.receipt["state"] != "ESCALATED":
                for a in self._terms:
                    a.confirmed = e.sequence
                    self.agreements.append(a)
                self._terms = []
            return
        if not self._executing:
            if self.mode == "binding/1" and self._format >= 4 and data.get("agreementSignature") and self.agreements:
                self._signed.add(side)
                self.agreements[-1].signatures[side] = data["agreementSignature"]
            return
        key = (data.get("commitmentId"), str(data.get("obligation")))
        if kind == "result" and key in self._obligations:
            o = self._obligations[key]
            o.delivery = Delivery(e.id, _exactly(data.get("quantity")), o.breached)
            self._deliveries[e.id] = self._about[e.sequence] = key
        elif kind == "waiver" and key in self._obligations:
            o = self._obligations[key]
            o.ended, o.delivery = "waived", None
            self._about[e.sequence] = key
        elif kind == "dispute":
            self._file(e, data, side)
        elif kind in ("reply", "resolution") and data.get("disputeId") in self._disputes:
            self._replied(e, kind, data)

    def _take(self, sequence: int, o: Obligation, quantity: Fraction | None, how: str) -> None:
        """What was delivered is accepted: a quantity of it, or all."""
        d = o.delivery
        if d is None:
            raise ValueError(f"entry {sequence} accepts what does not wait for an answer")
        o.delivery = None
        if o.remains is not None:
            taken = quantity if quantity is not None else d.quantity if d.quantity is not None else o.remains
            o.remains, o.accepted = o.remains - taken, (o.accepted or 0) + taken
        if not o.remains:
            o.ended = "late" if d.late and how == "fulfilled" else how
        self._about[sequence] = (o.commitment, o.id)

    def _due_again(self, sequence: int, key: tuple[str, str]) -> None:
        self._obligations[key].delivery = None
        self._about[sequence] = key

    def _happened(self, sequence: int, data: JSON) -> None:
        """The broker enters what has passed."""
        event = data["event"]
        if event in ("breached", "deemed"):
            key = (data["commitmentId"], str(data["obligation"]))
            o = self._obligations[key]
            if event == "deemed":
                self._take(sequence, o, None, "deemed")
            else:
                o.breached, o.breaches = True, o.breaches + 1
                self._about[sequence] = key
        elif event in ("decided", "unresolved"):
            self._decided(sequence, self._disputes[data["disputeId"]], data["decision"] if event == "decided" else event)

    # --- disputes

    def _file(self, e: Entry, data: JSON, side: str) -> None:
        subject = self._hashes[data["subject"]]
        d = Dispute(data["disputeId"], side, data["ground"], subject, [e.sequence])
        if subject in self._about:
            d.commitment, d.obligation = self._about[subject]
        else:
            d.commitment = next((c.id for c in self._carried if subject > 0 and subject in c.entries), "")
        self._disputes[d.id] = d
        self._contest(d, 1)

    def _contest(self, d: Dispute, n: int) -> None:
        for o in self._obligations.values():
            if o.commitment == d.commitment and d.obligation in ("", o.id):
                o.disputes += n

    def _replied(self, e: Entry, kind: str, data: JSON) -> None:
        d = self._disputes[data["disputeId"]]
        if kind == "resolution":
            self._decided(e.sequence, d, data["decision"])
            return
        d.entries.append(e.sequence)
        if data["position"] == "offer":
            self._remedies[e.id] = d.id
        elif data["position"] == "concede":  # people of the side that filed it give the claim up
            self._decided(e.sequence, d, "dismissed" if side_of(e) == d.by else "conceded")

    def _decided(self, sequence: int, d: Dispute, how: str) -> None:
        """A dispute ends. What was delivered and rightly disputed is due again."""
        d.status = how
        d.entries.append(sequence)
        self._contest(d, -1)
        o = self._obligations.get((d.commitment, d.obligation))
        if o is not None and o.delivery is not None and o.party != d.by and how in ("upheld", "conceded"):
            self._due_again(sequence, (d.commitment, d.obligation))


def promises(terms: Any) -> list[JSON]:
    """The obligations of terms, if they are in the form that a COMMIT has."""
    if not isinstance(terms, dict) or not isinstance(terms.get("obligations"), list):
        return []
    return identified(terms["obligations"]) if all(_promise(o) for o in terms["obligations"]) else []


def identified(obligations: list[JSON]) -> list[JSON]:
    """Each with its id, which is its index by default; none where two have one."""
    found = [{**o, "id": o.get("id") or str(i)} for i, o in enumerate(obligations)]
    return found if len({o["id"] for o in found}) == len(found) <= _MOST else []


def _promise(o: Any) -> bool:
    if not isinstance(o, dict):
        return False
    form: dict[str, Callable[[Any], bool]] = {
        "id": lambda v: isinstance(v, str) and 0 < len(v.encode()) <= 128,
        "party": lambda v: isinstance(v, str) and bool(_PRINCIPAL.fullmatch(v)),
        "action": lambda v: isinstance(v, str) and v != "",
        "deadline": lambda v: isinstance(v, str) and v == v.upper() and time_of(v) is not None,
        "quantity": lambda v: _number(v) and v > 0,
        "unit": lambda v: isinstance(v, str) and len(v) <= 64,
        "amount": _worth,
        "verificationMethod": lambda v: isinstance(v, str),
        "acceptanceWindowMs": lambda v: _number(v) and v == int(v) and 1 <= v <= 31_536_000_000,
    }
    return {"party", "action"} <= set(o) and all(form[name](value) for name, value in o.items() if name in form)


def _worth(v: Any) -> bool:
    if not isinstance(v, dict) or not _number(v.get("value")) or v["value"] < 0:
        return False
    return isinstance(v.get("currency"), str) and bool(re.fullmatch("[A-Z]{3}", v["currency"]))


def _number(v: Any) -> bool:
    return isinstance(v, (int, float)) and not isinstance(v, bool)


def _exactly(value: Any) -> Fraction | None:
    """A quantity as it is written, not as the nearest double is."""
    return None if value is None else Fraction(json.dumps(value))


def _once(agents: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(agents))
