"""The thirteen acts, and Wait, as values that a handler returns.

What an act leaves out comes from the move of the snapshot that it takes: ids, and the rest of the
offer that it answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .deal import Commitment, Delegation, Item, Offer
    from .execution import Delivery, Reply

    AnyOffer = Offer[Any]


def _id(what: Any) -> str | None:
    """The id of an offer, an item, a delegation, or an id itself."""
    if what is None or isinstance(what, str):
        return what
    return str(what.id)


@dataclass(frozen=True, kw_only=True)
class Act:
    """An act.

    ``recipient`` is who should act on it, by default everybody. ``also`` are further members of the
    body, such as ``assessment`` in ``bilateral/1`` or ``validUntil`` of an offer.
    """

    performative: ClassVar[str]
    kind: ClassVar[str | None] = None  # what it does with what was agreed, such as "result"
    recipient: str | None = None
    also: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reference(self) -> str | None:
        """The id of what it answers, asks about or takes back; None for nothing."""
        return None

    def fills(self) -> dict[str, Any]:
        """Members of the body that the move leaves to the sender."""
        return {}


@dataclass(frozen=True)
class _Answer(Act):
    to: AnyOffer | Commitment | Item | Delegation | Delivery | Reply | str

    @property
    def reference(self) -> str | None:
        return _id(self.to)


def _said(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True)
class Propose(Act):
    """Make an offer. ``subject`` is by default the purpose of the session."""

    performative: ClassVar[str] = "PROPOSE"
    terms: BaseModel | Mapping[str, Any]
    subject: str | None = None
    type: str = "service-agreement"
    message: str | None = None

    def fills(self) -> dict[str, Any]:
        return _said(terms=self.terms, subject=self.subject, type=self.type, message=self.message)


@dataclass(frozen=True)
class Accept(_Answer):
    """Accept an offer, an invitation, a commitment, a delegation or a delivery; of a delivery also a ``quantity`` of it."""

    performative: ClassVar[str] = "ACCEPT"
    message: str | None = None
    quantity: float | None = None

    def fills(self) -> dict[str, Any]:
        return _said(message=self.message, quantity=self.quantity)


@dataclass(frozen=True)
class Reject(_Answer):
    """Reject what waits for an answer. ``code`` is one of PROTOCOL.md section 4, or ``unspecified``."""

    performative: ClassVar[str] = "REJECT"
    reason: str = "not acceptable"
    code: str = "unspecified"
    retryable: bool = False

    def fills(self) -> dict[str, Any]:
        return _said(reason=self.reason, code=self.code, retryable=self.retryable)


@dataclass(frozen=True)
class Counter(_Answer):
    """Offer other terms instead of an offer: complete ones, not a difference."""

    performative: ClassVar[str] = "COUNTER"
    terms: BaseModel | Mapping[str, Any]
    reason: str | None = None
    message: str | None = None

    def fills(self) -> dict[str, Any]:
        return _said(terms=self.terms, reason=self.reason, message=self.message)


@dataclass(frozen=True)
class Clarify(_Answer):
    """Ask about fields of an offer; each question is a pair of a field's path and a text."""

    performative: ClassVar[str] = "CLARIFY"
    questions: Sequence[tuple[str, str]]

    def fills(self) -> dict[str, Any]:
        return {"questions": [{"field": field, "question": question} for field, question in self.questions]}


@dataclass(frozen=True)
class Commit(Act):
    """Commit to obligations, of an accepted offer or of none."""

    performative: ClassVar[str] = "COMMIT"
    to: AnyOffer | str | None = None
    obligations: Sequence[Mapping[str, Any]] = ()
    outcome: str | None = None

    @property
    def reference(self) -> str | None:
        return _id(self.to)

    def fills(self) -> dict[str, Any]:
        terms = {"obligations": list(self.obligations)} if self.obligations else None
        return _said(terms=terms, outcome=self.outcome)


@dataclass(frozen=True)
class Delegate(Act):
    """Have another agent check something (``advisory``), or act (``limited``, ``full``), about one offer or all.

    What a handler returns takes your delegation to it about another offer back first: an agent has one at a time.
    """

    performative: ClassVar[str] = "DELEGATE"
    target: str
    about: AnyOffer | str | None = None
    scope: str = "check the offer"
    authority: str = "advisory"
    valid_until: str | None = None

    def fills(self) -> dict[str, Any]:
        return _said(
            targetAgent=self.target, scope=self.scope, authority=self.authority, referenceId=_id(self.about), validUntil=self.valid_until
        )


@dataclass(frozen=True)
class Withdraw(_Answer):
    """Take back your own offer, question, invitation or delegation, or give back a delegation to you."""

    performative: ClassVar[str] = "WITHDRAW"
    reason: str | None = None

    def fills(self) -> dict[str, Any]:
        return _said(reason=self.reason)


@dataclass(frozen=True)
class Inform(Act):
    """Say a fact, answer a question or a QUERY, or report the result of a check."""

    performative: ClassVar[str] = "INFORM"
    data: Any
    to: Item | Delegation | str | None = None

    @property
    def reference(self) -> str | None:
        return _id(self.to)

    @classmethod
    def result(cls, check: Delegation, **data: Any) -> Inform:
        """Report what a check found; this ends an advisory or limited delegation's turn."""
        return cls(data, to=check)

    @classmethod
    def answer(cls, question: Item | str, *answers: Any, **data: Any) -> Inform:
        """Answer the fields of a CLARIFY in their order, or a QUERY with ``data``."""
        return cls(list(answers) or data, to=question)

    def fills(self) -> dict[str, Any]:
        return {"data": self.data}


@dataclass(frozen=True)
class Query(Act):
    """Ask something that is about no offer."""

    performative: ClassVar[str] = "QUERY"
    subject: str
    query_type: str = "question"

    def fills(self) -> dict[str, Any]:
        return {"subject": self.subject, "queryType": self.query_type}


@dataclass(frozen=True)
class Observe(Act):
    """Remark something for the record."""

    performative: ClassVar[str] = "OBSERVE"
    subject: str
    data: Any = None

    def fills(self) -> dict[str, Any]:
        return _said(subject=self.subject, data=self.data)


@dataclass(frozen=True)
class Escalate(Act):
    """Ask a human of your organisation. The session waits until one has decided. Only your side reads ``why``, ``context``, ``suggest``."""

    performative: ClassVar[str] = "ESCALATE"
    about: AnyOffer | str | None = None
    why: str = ""
    reason: str = "authority-limit"
    urgency: str = "medium"
    suggest: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)

    def fills(self) -> dict[str, Any]:
        return _said(
            reason=self.reason,
            urgency=self.urgency,
            context={"why": self.why, **self.context},
            referenceId=_id(self.about),
            suggestedAction=self.suggest,
        )


@dataclass(frozen=True)
class Close(Act):
    """End the session."""

    performative: ClassVar[str] = "CLOSE"
    outcome: str = "abandoned"
    summary: str | None = None
    reason: str | None = None

    @classmethod
    def completed(cls, summary: str | None = None) -> Close:
        """End a session that came to what it was for."""
        return cls("completed", summary)

    def fills(self) -> dict[str, Any]:
        return _said(outcome=self.outcome, summary=self.summary, reason=self.reason)


@dataclass(frozen=True)
class Wait:
    """Do nothing now: until there is news, or until ``seconds`` have passed. ``on`` is for the reader of the code."""

    on: Any = None
    seconds: float | None = None


Decision = Act | Wait | None
"""What a handler returns. None is ``Wait()``."""
