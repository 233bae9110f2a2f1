"""What becomes of an agreement: obligations and disputes as a deal has them, and the acts that carry them out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from .acts import Act, _id, _said


@dataclass(frozen=True)
class Evidence:
    """A file by its digest, which ``digest_of`` gives."""

    kind: str
    digest: str
    uri: str | None = None
    media_type: str | None = None
    note: str | None = None

    def said(self) -> dict[str, Any]:
        """The evidence as an act has it."""
        return _said(kind=self.kind, digest=self.digest, uri=self.uri, mediaType=self.media_type, note=self.note)


def digest_of(file: Path | bytes) -> str:
    """The digest of a file, or of bytes, as evidence names it."""
    data = file.read_bytes() if isinstance(file, Path) else file
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@dataclass(frozen=True)
class Delivery:
    """What was said to be delivered and waits for an answer, which its ``id`` names."""

    id: str
    by: str
    quantity: float | None
    evidence: Sequence[Mapping[str, Any]]
    raw: Mapping[str, Any]


@dataclass(frozen=True)
class Obligation:
    """An obligation and where it stands. ``raw`` is all that the snapshot has of it."""

    id: str  # k1/0: what acts name
    party: str
    to: Sequence[str]
    action: str
    status: str  # due, asserted, partial, fulfilled, deemed, late, breached, waived, released or disputed
    remains: float | None
    accepted: float | None
    breaches: int
    delivery: Delivery | None
    raw: Mapping[str, Any]

    @classmethod
    def of(cls, view: Mapping[str, Any]) -> Obligation:
        """Read the snapshot's."""
        at = view.get("delivery")
        delivery = Delivery(at["referenceId"], at["by"], at.get("quantity"), tuple(at.get("evidence", ())), at) if at else None
        return cls(
            f"{view['commitmentId']}/{view['obligation']}", view["party"], tuple(view["to"]), view["action"], view["status"],
            view.get("remains"), view.get("accepted"), view.get("breaches", 0), delivery, view,
        )  # fmt: skip


@dataclass(frozen=True)
class Reply:
    """What another side said to a dispute; an offered remedy is accepted by its ``id``."""

    id: str
    by: str
    position: str  # concede, deny or offer
    remedy: str | None


@dataclass(frozen=True)
class Disputed:
    """A dispute and what was replied to it. ``raw`` is all that the snapshot has of it."""

    id: str
    by: str
    ground: str
    claim: str
    severity: int
    status: str  # open, upheld, dismissed, split, conceded, agreed or unresolved
    replies: Sequence[Reply]
    raw: Mapping[str, Any]

    @classmethod
    def of(cls, view: Mapping[str, Any]) -> Disputed:
        """Read the snapshot's."""
        replies = tuple(Reply(r["referenceId"], r["by"], r["position"], r.get("remedy")) for r in view.get("replies", ()))
        return cls(view["disputeId"], view["by"], view["ground"], view["claim"], view["severity"], view["status"], replies, view)


@dataclass(frozen=True)
class _CarriesOut(Act):
    """An INFORM about what was agreed."""

    performative: ClassVar[str] = "INFORM"
    about: Obligation | Disputed | str

    @property
    def reference(self) -> str | None:
        return _id(self.about)

    def data(self) -> dict[str, Any]:
        """What the move leaves open."""
        raise NotImplementedError

    def fills(self) -> dict[str, Any]:
        return {"data": self.data()}


def _all(evidence: Sequence[Evidence]) -> list[dict[str, Any]] | None:
    return [e.said() for e in evidence] or None


@dataclass(frozen=True)
class Deliver(_CarriesOut):
    """Say that you delivered what an obligation of yours asks for: all that is due, or a quantity of it."""

    kind: ClassVar[str | None] = "result"
    quantity: float | None = None
    evidence: Sequence[Evidence] = ()

    def data(self) -> dict[str, Any]:
        return _said(quantity=self.quantity, evidence=_all(self.evidence))


@dataclass(frozen=True)
class Report(_CarriesOut):
    """Report progress with an obligation of yours, which changes nothing."""

    kind: ClassVar[str | None] = "progress"
    of: Any

    def data(self) -> dict[str, Any]:
        return {"data": self.of}


@dataclass(frozen=True)
class Waive(_CarriesOut):
    """Do without what another party owes."""

    kind: ClassVar[str | None] = "waiver"
    reason: str

    def data(self) -> dict[str, Any]:
        return {"reason": self.reason}


@dataclass(frozen=True)
class Amend(Act):
    """Propose other obligations of a commitment, which every party has to accept."""

    performative: ClassVar[str] = "PROPOSE"
    kind: ClassVar[str | None] = "amendment"
    commitment: str
    obligations: Sequence[Mapping[str, Any]]
    message: str | None = None

    @property
    def reference(self) -> str | None:
        return self.commitment

    def fills(self) -> dict[str, Any]:
        return _said(terms={"obligations": list(self.obligations)}, message=self.message)


@dataclass(frozen=True)
class Dispute(Act):
    """Dispute an entry, by its hash. ``severity`` is from 1 to 5."""

    performative: ClassVar[str] = "INFORM"
    kind: ClassVar[str | None] = "dispute"
    subject: str
    ground: str  # non-delivery, late, mismatch, unauthorized-change, escrow or other
    claim: str
    remedy: str | None = None
    severity: int = 1
    evidence: Sequence[Evidence] = ()

    def fills(self) -> dict[str, Any]:
        said = _said(subject=self.subject, ground=self.ground, claim=self.claim, remedy=self.remedy, severity=self.severity)
        return {"data": said | _said(evidence=_all(self.evidence))}


@dataclass(frozen=True)
class Concede(_CarriesOut):
    """Concede a dispute, which ends it."""

    kind: ClassVar[str | None] = "concede"
    reason: str | None = None

    def data(self) -> dict[str, Any]:
        return _said(comment=self.reason)


@dataclass(frozen=True)
class Deny(_CarriesOut):
    """Deny what a dispute claims."""

    kind: ClassVar[str | None] = "deny"
    reason: str

    def data(self) -> dict[str, Any]:
        return {"comment": self.reason}


@dataclass(frozen=True)
class Compensate(_CarriesOut):
    """Offer a remedy; the dispute ends once the side that filed it accepts."""

    kind: ClassVar[str | None] = "offer"
    remedy: str
    reason: str | None = None
    evidence: Sequence[Evidence] = ()

    def data(self) -> dict[str, Any]:
        return _said(remedy=self.remedy, comment=self.reason, evidence=_all(self.evidence))


@dataclass(frozen=True)
class _Decision(_CarriesOut):
    reason: str
    award: Any = None

    def data(self) -> dict[str, Any]:
        return _said(reason=self.reason, award=self.award)


@dataclass(frozen=True)
class Uphold(_Decision):
    """Decide a dispute for the side that filed it, as its arbiter."""

    kind: ClassVar[str | None] = "upheld"


@dataclass(frozen=True)
class Dismiss(_Decision):
    """Decide a dispute against the side that filed it, as its arbiter."""

    kind: ClassVar[str | None] = "dismissed"


@dataclass(frozen=True)
class Split(_Decision):
    """Decide a dispute for both sides in part, as its arbiter."""

    kind: ClassVar[str | None] = "split"
