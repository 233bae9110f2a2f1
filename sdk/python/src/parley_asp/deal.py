"""One view of a negotiation, for one side: what a handler decides on.

A deal is a snapshot of the broker's (GATEWAYS.md G9) with the entries that the caller may read. It
never changes; each decision gets a new one.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ._json import JSON, told
from .errors import TermsError
from .execution import Disputed, Obligation

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T", bound="BaseModel")


def fenced(text: str, by: str) -> str:
    """Quote what somebody else wrote, so that a model reads it as data. Nothing in it ends the quote."""
    return f'<quote from="{html.escape(by)}">\n{html.escape(text, quote=False)}\n</quote>'


@dataclass(frozen=True)
class Offer(Generic[T]):
    """An offer. ``raw`` are its terms as they came; ``terms`` are read by the author's model. Where ``truncated``, you may not read all.

    ``text`` is a sentence, which leaves out what is long.
    """

    id: str
    by: str
    mine: bool
    subject: str
    raw: Mapping[str, Any]
    text: str
    status: str
    expires: datetime | None
    binding: bool
    changes: Sequence[Mapping[str, Any]]
    model: type[T] | None = field(repr=False, default=None)
    truncated: bool = False

    @cached_property
    def terms(self) -> T:
        """The terms as the author's model.

        Raises:
            TermsError: they do not fit it, you may not read all of them, or there is no model.
        """
        if not self.id:
            raise TermsError("no offer of the other side is open")
        if self.truncated:
            raise TermsError(f"the terms of {self.id} are cut, and you may not read its entry")
        if self.model is None:
            raise TermsError("this agent has no model of terms: Agent(terms=…), or read offer.raw")
        from pydantic import ValidationError

        try:
            return self.model.model_validate(dict(self.raw))
        except ValidationError as error:
            fields = ", ".join(".".join(str(part) for part in e["loc"]) or "terms" for e in error.errors())
            raise TermsError(f"the terms of {self.id} do not fit {self.model.__name__}: {fields}") from None

    @property
    def open(self) -> bool:
        """It waits for an answer."""
        return self.status == "open"

    def __bool__(self) -> bool:
        return bool(self.id)


@dataclass(frozen=True)
class Item:
    """What waits for an answer: an invitation, offer, question, commitment, delegation, check or escalation."""

    kind: str
    id: str
    by: str
    of: Sequence[str]  # who should answer
    due: datetime | None
    text: str
    raw: Mapping[str, Any] = field(default_factory=dict)  # body of an invitation, a commitment or an amendment, to which an ACCEPT agrees
    truncated: bool = False  # raw is cut; the entries have all of it


@dataclass(frozen=True)
class Delegation:
    """A delegation: one that you made, or have not made yet (then it is false), or one to you."""

    target: str
    id: str = ""
    by: str = ""
    authority: str = ""
    scope: str = ""
    about: str | None = None
    status: str = ""
    result: Any = None  # data of the newest INFORM of type result

    def __bool__(self) -> bool:
        return bool(self.id)


@dataclass(frozen=True)
class Commitment:
    """A COMMIT to an offer that is open or was accepted; it is false if there is none. ``raw`` is its body."""

    id: str
    by: str = ""
    mine: bool = False
    open: bool = False
    raw: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.id)


@dataclass(frozen=True)
class Approval:
    """What a human of your side decided about an offer. It is true if the offer is approved as it is, and false if only another is."""

    id: str
    decision: str  # approved, modified, denied or guidance; "" while nobody has decided
    comment: str | None = None
    authority: Mapping[str, Any] | None = None
    granted: bool = False

    @property
    def pending(self) -> bool:
        """A human was asked, and has not decided."""
        return bool(self.id) and not self.decision

    def __bool__(self) -> bool:
        return self.granted


@dataclass(frozen=True)
class Deal(Generic[T]):
    """A negotiation as one side sees it at one entry of its transcript."""

    view: JSON = field(repr=False)
    entries: Sequence[JSON] = field(repr=False, default=())
    model: type[T] | None = field(repr=False, default=None)
    check: Delegation | None = None  # what was delegated to you in this session
    schema: str | None = None  # the name of the model as a terms schema

    @property
    def id(self) -> str:
        return str(self.view["sessionId"])

    @property
    def purpose(self) -> str:
        return str(self.view.get("purpose", ""))

    @property
    def mode(self) -> str:
        return str(self.view["mode"])

    @property
    def state(self) -> str:
        return str(self.view["state"])

    @property
    def over(self) -> bool:
        """Nothing more can be said."""
        return self.state in ("CLOSED", "FAILED")

    @property
    def outcome(self) -> str | None:
        """Why it is over."""
        return self.view.get("outcome")

    @property
    def head(self) -> str:
        """The hash of the newest entry, to which a decision is tied."""
        return str(self.view["head"]["hash"])

    @property
    def me(self) -> str:
        return str(self.view["you"].get("agentId", ""))

    @property
    def role(self) -> str:
        """inviter, invitee, delegate, standby, approver or observer."""
        return str(self.view["you"]["role"])

    @property
    def counterparty(self) -> str:
        """The other principal; with several, the first."""
        return next((str(o["agentId"]) for o in self.view["others"] if o["role"] in ("inviter", "invitee")), "")

    @property
    def private(self) -> Any:
        """What your side alone may know, as the invitation said."""
        return self.view.get("private")

    @property
    def schemas(self) -> Sequence[str]:
        """Names of the terms schemas that the invitation lists, as far as you may read it."""
        found: Sequence[str] = ()
        for e in self.entries:
            if e["performative"] == "ACCEPT":
                break
            if e["performative"] in ("PROPOSE", "COUNTER"):  # a countered invitation is another one
                found = tuple((_body(e).get("terms") or {}).get("schemas") or ())
        return found

    @cached_property
    def offers(self) -> Sequence[Offer[T]]:
        """The newest offers, oldest first."""
        return tuple(self._offer(o) for o in self.view["offers"])

    def _offer(self, o: JSON) -> Offer[T]:
        entry = entry_of(o["id"], self.entries) if o.get("truncated") else None
        whole = _body(entry) if entry else {"subject": o.get("about", ""), "terms": o.get("terms", {})}
        changes = ({"path": "terms", "to": whole.get("terms", {})},) if entry else tuple(o.get("changes", ()))  # which are cut, too
        return Offer(
            o["id"], o["by"], o["mine"], whole.get("subject") or o.get("about", ""), whole.get("terms", {}), o["text"], o["status"],
            _time(o.get("expires")), o["binding"], changes, self.model, bool(o.get("truncated")) and entry is None,
        )  # fmt: skip

    @property
    def their_offer(self) -> Offer[T]:
        """The newest open offer of another side; it is false, and has no terms, if there is none."""
        return self._newest(mine=False) or Offer("", "", False, "", {}, "", "", None, False, (), self.model)

    @property
    def my_offer(self) -> Offer[T] | None:
        """Your newest open offer."""
        return self._newest(mine=True)

    def _newest(self, mine: bool) -> Offer[T] | None:
        return next((o for o in reversed(self.offers) if o.open and o.mine == mine and not self.over), None)

    @cached_property
    def agreed(self) -> Offer[T] | None:
        """The offer that was accepted last."""
        agreed = self.view.get("agreed")
        return self._offer(agreed) if agreed else None

    @cached_property
    def open(self) -> Sequence[Item]:
        """What waits for an answer, of anybody."""
        return tuple(
            Item(i["kind"], i["id"], i["by"], tuple(i["for"]), _time(i.get("due")), i["text"], i.get("body", {}), i.get("truncated", False))
            for i in self.view["open"]
        )

    @cached_property
    def obligations(self) -> Sequence[Obligation]:
        """What is carried out of what was agreed, the soonest due first."""
        return tuple(Obligation.of(o) for o in self.view.get("obligations", ()))

    @cached_property
    def disputes(self) -> Sequence[Disputed]:
        """The newest first."""
        return tuple(Disputed.of(d) for d in self.view.get("disputes", ()))

    @property
    def invitation(self) -> Item | None:
        """The invitation, while it waits for you."""
        return self._mine("invitation")

    @property
    def questions(self) -> Sequence[Item]:
        """Questions of a CLARIFY that wait for you."""
        return tuple(i for i in self.open if i.kind == "question" and self.me in i.of)

    def _mine(self, *kinds: str) -> Item | None:
        return next((i for i in self.open if i.kind in kinds and self.me in i.of), None)

    @property
    def yours(self) -> bool:
        """The session waits for your side, and you may answer."""
        return bool((self.view.get("waiting") or {}).get("yours"))

    @property
    def lapsed(self) -> bool:
        """Your newest offer has expired or was rejected, and nothing waits for anybody: the next offer, or the end, is yours to say."""
        if self.over or self.view.get("agreed") or self.view["open"] or not self.view["offers"] or not self.allows("PROPOSE"):
            return False
        return self.offers[-1].mine and self.offers[-1].status in ("expired", "rejected")

    @property
    def deadline(self) -> datetime | None:
        """When the session ends if nobody answers."""
        return _time((self.view.get("waiting") or {}).get("deadline"))

    @property
    def moves(self) -> Sequence[JSON]:
        """Exactly what you may send now."""
        return cast("Sequence[JSON]", self.view["moves"])

    @property
    def allowed(self) -> Sequence[str]:
        """The performatives of the moves."""
        return tuple(dict.fromkeys(m["performative"] for m in self.moves))

    def allows(self, performative: str, about: Offer[T] | Item | str | None = None) -> bool:
        """Whether an act is among the moves, of a thing if one is named."""
        reference = about if isinstance(about, str) or about is None else about.id
        return any(m["performative"] == performative and (reference is None or m.get("referenceId") == reference) for m in self.moves)

    @property
    def news(self) -> Sequence[JSON]:
        """Entries that came since you spoke last, as delivered."""
        spoke = max((n for n, e in enumerate(self.entries) if _by(e) == self.me), default=-1)
        return self.entries[spoke + 1 :]

    @cached_property
    def round(self) -> int:
        """How many offers you have made."""
        return sum(1 for e in self.entries if _by(e) == self.me and e["performative"] in ("PROPOSE", "COUNTER") and not _invites(e))

    def step(self, first: Decimal | int | str, last: Decimal | int | str, rounds: int = 4, places: int = 2) -> Decimal:
        """A concession in equal steps: ``first`` before you have made an offer, ``last`` after ``rounds`` of them."""
        a, b = Decimal(first), Decimal(last)
        now = a + (b - a) * min(self.round, rounds) / rounds
        return now.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)

    def delegation(self, target: str, about: Offer[T] | str | None = None) -> Delegation:
        """Your side's newest delegation to an agent, or its newest about an offer; it is false if there is none, or you took it back."""
        offer = about.id if isinstance(about, Offer) else about
        found = Delegation(target)
        newest = False  # so that what its target says belongs to it
        for e in self.entries:
            body = _body(e)
            ours = _by(e) != target and self._ours(e)
            if e["performative"] == "DELEGATE" and ours and body.get("targetAgent") == target:
                newest = offer is None or body.get("referenceId") == offer
                if newest:
                    found = Delegation(
                        target, e["messageId"], _by(e), body.get("authority", ""), body.get("scope", ""), body.get("referenceId"), "offered"
                    )
            elif e["performative"] == "WITHDRAW" and ours and newest and body.get("referenceId") == found.id:
                if found.status != "done":  # what was checked stays checked
                    found, newest = Delegation(target), False
            elif newest and _by(e) == target:
                refers = body.get("referenceId") == found.id
                if e["performative"] == "INFORM" and body.get("type") == "result":
                    data = body.get("data")
                    of = data.get("referenceId") if isinstance(data, dict) else None
                    if found.about and of and of != found.about:
                        continue  # it is about another offer
                    found = _with(found, status="done", result=body.get("data"))
                elif e["performative"] in ("REJECT", "WITHDRAW") and refers:
                    found = _with(found, status="declined")
                elif found.status == "offered":
                    found = _with(found, status="active")
        return found

    def commitment(self, offer: Offer[T] | str) -> Commitment:
        """The newest commitment to an offer, of either side, that was not rejected or taken back; it is false if there is none."""
        found: dict[str, Commitment] = {}
        for e in self.entries:
            body = _body(e)
            if e["performative"] == "COMMIT" and body.get("referenceId") == (offer if isinstance(offer, str) else offer.id):
                made = str(body["commitmentId"])
                found[made] = Commitment(made, _by(e), _by(e) == self.me, any(i.id == made for i in self.open), body)
            elif e["performative"] in ("REJECT", "WITHDRAW"):
                found.pop(str(body.get("referenceId")), None)
        return next(reversed(found.values()), Commitment(""))

    def approval(self, offer: Offer[T]) -> Approval:
        """What a human of your side decided when you asked about this very offer."""
        found = Approval("", "")
        for e in self.entries:
            body = _body(e)
            if e["performative"] == "ESCALATE" and body.get("referenceId") == offer.id and self._ours(e):
                found = Approval(e["messageId"], "")
            elif e["performative"] == "INFORM" and body.get("type") == "resolution" and found.id:
                data = body.get("data") or {}
                if data.get("escalationId") == found.id and self._decides(data, e):
                    granted = data["decision"] == "approved" and self._may_still(offer)
                    granted = granted or (data["decision"] == "modified" and self.allows("ACCEPT", offer))
                    found = Approval(found.id, str(data["decision"]), data.get("comment"), data.get("authority"), granted)
        return found

    def _may_still(self, offer: Offer[T]) -> bool:
        """Whether an approved offer may be accepted, or would be but for a question about it."""
        return offer.mine or not offer.open or self.allows("ACCEPT", offer) or any(i.kind == "question" for i in self.open)

    def _ours(self, e: JSON) -> bool:
        """Whether an entry is of the caller's side: of its principal, or of its organisation and of no other principal."""
        mine = str(self.view["you"].get("onBehalfOf") or self.me)
        side = str(e.get("integrity", {}).get("onBehalfOf") or _by(e))
        others = [o["agentId"] for o in self.view["others"] if o["role"] in ("inviter", "invitee") and o["agentId"] != mine]
        return side == mine or (_host(side) == _host(mine) and side not in others)

    def _decides(self, data: JSON, e: JSON) -> bool:
        """Whether a ruling ended the pause; of several that are needed, the last does."""
        return bool(data.get("decision")) and (e.get("integrity", {}).get("receipt", {}).get("state") != "ESCALATED")

    def text(self) -> str:
        """The deal in sentences for a model. What is quoted is fenced, also what you said: it may have words of the other side."""
        lines = [f"A negotiation: {self.state}, {self.role}."]
        if self.purpose:
            lines.append(fenced(self.purpose, "the invitation"))
        lines += [fenced(f"{o.text}\n{told(o.raw)}" + ("\n(cut)" if o.truncated else ""), o.by) for o in self.offers]
        lines += [fenced(i.text, i.by) for i in self.open]
        return "\n".join(lines)


def _with(d: Delegation, **changes: Any) -> Delegation:
    return Delegation(**{**{name: getattr(d, name) for name in d.__dataclass_fields__}, **changes})


def _time(text: str | None) -> datetime | None:
    if not text:
        return None
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{seconds}.{fraction[:6]:0<6}+00:00")


def entry_of(offer: str, entries: Sequence[JSON]) -> JSON | None:
    """The entry that made an offer; None if it is not among those that the caller may read."""
    return next((e for e in entries if e["performative"] in ("PROPOSE", "COUNTER") and _body(e).get("proposalId") == offer), None)


def _by(entry: JSON) -> str:
    return str(entry["sender"]["agentId"])


def _body(entry: JSON) -> JSON:
    body = entry["content"]["body"]
    return body if isinstance(body, dict) else {}


def _invites(entry: JSON) -> bool:
    return _body(entry).get("type") == "session-invitation"


def _host(uri: str) -> str:
    return uri.partition("://")[2].partition("/")[0]
