"""What the bridges to frameworks share: a model starts a negotiation by a tool call, and reads what came of it.

The handlers of the agent decide what is said, and a human decides what is escalated, in parley's inbox. The
framework's run is parked meanwhile. It may call again, also after a crash: the same request is the same session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field, ValidationError, create_model

from .._json import JSON, plain
from .._json import told as written
from ..agent import Agent
from ..deal import Deal, fenced
from ..errors import LASTING, OF_PROGRAM, ParleyError, Refusal, TermsError

NAME = "negotiate"
ABOUT = "Negotiate with another agent until you agree or not. You may have to wait for it. You get what came of it."


class Negotiations:
    """Negotiations of one agent that a model starts.

    Args:
        key: of the task that the model works on, such as an order's number. The same request of the model with the
            same key is the same session.
        mode, policy: of the sessions.
    """

    def __init__(self, agent: Agent[Any], key: str = "", mode: str = "asp/1", policy: Mapping[str, Any] | None = None) -> None:
        self._agent, self._key, self._mode, self._policy = agent, key, mode, policy
        self.request: type[BaseModel] = create_model(
            "Negotiate",
            counterparty=(str, Field(description="the other agent's URI, agent://…")),
            subject=(str, Field(description="what is negotiated, in a few words")),
            terms=(agent.terms or dict[str, Any], Field(description="your first offer")),
        )

    async def look(self, arguments: Mapping[str, Any]) -> Deal[Any]:
        """Begin the negotiation, or go on with it, until it has to wait for somebody else, or is over.

        Raises:
            NotStarted: the request, or the invitation, is refused: tell the model.
            Refusal: the program itself is refused, such as when its token has expired. The negotiation may be under way.
        """
        return await self._agent.reduce(await self._begin(arguments))

    async def _begin(self, arguments: Mapping[str, Any]) -> str:
        try:
            asked: Any = self.request.model_validate(arguments)
            return await self._agent.open(
                asked.counterparty, asked.subject, asked.terms, mode=self._mode, key=self._key, policy=self._policy
            )
        except OF_PROGRAM:
            raise
        except (ValidationError, TermsError, Refusal) as error:
            raise NotStarted(str(error)) from None

    async def tried(self, arguments: Mapping[str, Any]) -> Deal[Any] | str:
        """Look, or say for a model why not. An error by what the other side said goes to ``on_error``: it may have its words.

        Raises:
            Exception: anything else, which may pass: look again later.
        """
        session = ""
        try:
            session = await self._begin(arguments)
            return await self._agent.reduce(session)
        except NotStarted as error:
            return f"It does not begin: {error}"
        except Exception as error:
            if not isinstance(error, LASTING):
                raise
            self._agent._failed_in(session, error)
            return f"It is under way, but deciding failed ({type(error).__name__}): the same call goes on with it."

    async def each(self, asked: Sequence[Mapping[str, Any]]) -> list[Deal[Any] | str]:
        """Try several; the first error is raised once all were looked at."""
        found: list[Deal[Any] | str] = []
        failed: Exception | None = None
        for arguments in asked:
            try:
                found.append(await self.tried(arguments))
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return found


class NotStarted(ParleyError):
    """A negotiation does not begin."""


def outcome(deal: Deal[Any]) -> JSON:
    """What came of a negotiation, or what it waits for: ``sessionId``, ``state``, ``outcome``, ``agreed``, ``waiting``."""
    agreed = plain(dict(deal.agreed.raw)) if deal.over and deal.agreed else None
    waiting = [] if deal.over else (deal.view.get("waiting") or {}).get("for", [])
    return {"sessionId": deal.id, "state": deal.state, "outcome": deal.outcome, "agreed": agreed, "waiting": waiting}


def told(deal: Deal[Any]) -> JSON:
    """The same for a model: terms that the other side wrote are fenced as data."""
    agreed = fenced(written(deal.agreed.raw), deal.agreed.by) if deal.over and deal.agreed else None
    return {**outcome(deal), "agreed": agreed}
