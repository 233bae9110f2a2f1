"""What can go wrong: one class for each code of the protocol, and few of the SDK's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from .deal import Deal


class ParleyError(Exception):
    """Any error of this package."""


class TermsError(ParleyError):
    """Terms do not fit the author's model, or cannot be sent as they are."""


class NoAnswer(ParleyError):
    """The broker did not answer in time. What was sent may have been accepted: the same again is safe."""


class LoopError(ParleyError):
    """A handler said act after act, and nobody else said anything. It rests until somebody does."""


class TenderError(ParleyError):
    """Some agents of a tender failed; the others did not.

    Attributes:
        deals: those with the others, in the order of the agents.
        failed: why, by the agent.
    """

    def __init__(self, deals: Sequence[Deal[Any]], failed: Mapping[str, BaseException]) -> None:
        why = "; ".join(f"{agent}: {error}" for agent, error in failed.items())
        super().__init__(f"{len(failed)} of {len(failed) + len(deals)} failed, the others are in deals: {why}")
        self.deals = list(deals)
        self.failed = dict(failed)


class Refusal(ParleyError):
    """The broker, or this package before it, refused something; nothing happened.

    Attributes:
        code: one of the protocol's codes, such as ``wrong_state``.
        details: what the code's row in PROTOCOL.md says, such as ``allowed``.
        retryable: the same may be accepted later.
        retry_after: seconds to wait, where the broker says so.
    """

    code: ClassVar[str] = ""

    def __init__(
        self, message: str, *, code: str = "", details: Any = None, retryable: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.retryable = retryable
        self.retry_after = retry_after
        if code:
            self.code = code  # type: ignore[misc]  # of a code that this version does not know

    @property
    def allowed(self) -> list[str]:
        """The performatives that the caller may send instead."""
        found = self.details.get("allowed") if isinstance(self.details, dict) else None
        return [str(act) for act in found] if isinstance(found, list) else []

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class Malformed(Refusal):
    code = "malformed"


class VersionUnsupported(Refusal):
    code = "version_unsupported"


class UnknownPerformative(Refusal):
    code = "unknown_performative"


class StaleTimestamp(Refusal):
    code = "stale_timestamp"


class SignatureInvalid(Refusal):
    code = "signature_invalid"


class Unauthorized(Refusal):
    code = "unauthorized"


class AuthorityExceeded(Refusal):
    code = "authority_exceeded"


class OwnProposal(Refusal):
    code = "own_proposal"


class UnknownSession(Refusal):
    code = "unknown_session"


class UnknownAgent(Refusal):
    code = "unknown_agent"


class WrongState(Refusal):
    code = "wrong_state"


class NotAllowed(WrongState):
    """The decision is none of the snapshot's moves, so it was not sent."""


class WrongTurn(Refusal):
    code = "wrong_turn"


class Duplicate(Refusal):
    code = "duplicate"


class ChainConflict(Refusal):
    """The session went on since the decision was taken: decide again."""

    code = "chain_conflict"


class ProposalUnknown(Refusal):
    code = "proposal_unknown"


class ProposalNotOpen(Refusal):
    code = "proposal_not_open"


class ClarificationPending(Refusal):
    code = "clarification_pending"


class EscalationResolved(Refusal):
    code = "escalation_resolved"


class TooLarge(Refusal):
    code = "too_large"


class SchemaInvalid(Refusal):
    code = "schema_invalid"


class SchemaUnsupported(Refusal):
    code = "schema_unsupported"


class ModeViolation(Refusal):
    code = "mode_violation"


class SessionEscalated(Refusal):
    code = "session_escalated"


class InsufficientTrust(Refusal):
    code = "insufficient_trust_score"


class RateLimited(Refusal):
    code = "rate_limited"


class Unavailable(Refusal):
    code = "unavailable"


OF_PROGRAM = (Unauthorized, SignatureInvalid, VersionUnsupported)  # of the program itself, such as of its token
LASTING = (TermsError, NotAllowed, LoopError)  # follow from a session, and come again


def passes(error: BaseException) -> bool:
    """Whether the same may be answered later, without anybody's doing."""
    return isinstance(error, NoAnswer) or (isinstance(error, Refusal) and error.code in ("unavailable", "rate_limited"))


_CLASSES: dict[str, type[Refusal]] = {c.code: c for c in Refusal.__subclasses__()}


def refusal(error: dict[str, Any], retry_after: float | None = None) -> Refusal:
    """The refusal that a broker's error is, as NATS or HTTP has it."""
    code = str(error.get("code", ""))
    return _CLASSES.get(code, Refusal)(
        str(error.get("message") or error.get("detail") or code),
        code=code,
        details=error.get("details"),
        retryable=bool(error.get("retryable")),
        retry_after=retry_after,
    )
