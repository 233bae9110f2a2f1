"""Temporal: a workflow that negotiates, parked until the session is over; a signal wakes it, or a durable timer does.

::

    with workflow.unsafe.imports_passed_through():
        from parley_asp.bridges.temporal import Negotiate, Negotiation, Request, negotiated
    Worker(client, task_queue="buyer", workflows=[Order, Negotiate], activities=[Negotiation(agent).look])

    deal = await negotiated(Request(seller, "cups", {"price": 60}, key="order 7"))  # in the workflow Order
    await wake(client, verify(secret, headers, body)["sessionId"])                  # where wake-up calls come in

The handlers of ``agent`` decide, in an activity. Temporal may run it again: the same request is the same session, and what
was said on one head is said once. An ESCALATE is decided by a human in parley's inbox. A refusal that lasts fails the
workflow, with its code as the error's type; the session may be under way, and the same request goes on with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from .._json import JSON
from ..agent import Agent
from ..errors import NoAnswer, ParleyError
from ._negotiation import Negotiations, outcome

LOOK = "parley.look"
BEAT = 5  # seconds between an activity's signs of life: a handler may take long, and a killed worker is known soon


@dataclass
class Request:
    """What to negotiate: the terms of the first offer are JSON, and the key is the task's, such as an order's number."""

    counterparty: str
    subject: str
    terms: dict[str, Any]
    key: str = ""
    pause: float = 300  # seconds until a workflow that nobody wakes looks again


class Negotiation:
    """The activity ``look`` of an agent."""

    def __init__(self, agent: Agent[Any], mode: str = "asp/1", policy: Mapping[str, Any] | None = None) -> None:
        self._agent, self._mode, self._policy = agent, mode, policy

    @activity.defn(name=LOOK)
    async def look(self, request: Request) -> JSON:
        """Decide what there is to decide, and say how the session stands."""
        beats = asyncio.create_task(_beat())
        try:
            task = Negotiations(self._agent, request.key, self._mode, self._policy)
            return outcome(await task.look(vars(request)))
        except ParleyError as error:
            lasts = not isinstance(error, NoAnswer) and not getattr(error, "retryable", False)
            raise ApplicationError(str(error), type=getattr(error, "code", type(error).__name__), non_retryable=lasts) from error
        finally:
            beats.cancel()


async def _beat() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(BEAT)


async def _look(request: Request) -> JSON:
    limits: Any = {"start_to_close_timeout": timedelta(hours=1), "heartbeat_timeout": timedelta(seconds=6 * BEAT)}
    deal: JSON = await workflow.execute_activity(LOOK, request, **limits)
    return deal


@workflow.defn(name="parley.negotiate", sandboxed=False)  # a sandbox would import the agent, and what it uses
class Negotiate:
    """The workflow that waits for a session, whose id it has. The query ``parked`` says on what; None while it looks."""

    def __init__(self) -> None:
        self._woken = False
        self._parked: JSON | None = None

    @workflow.run
    async def run(self, request: Request) -> JSON:
        """Wait until the session is over; returns what came of it."""
        while True:
            self._woken = False
            deal = await _look(request)
            if deal["state"] in ("CLOSED", "FAILED"):
                return deal
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(request)
            self._parked = deal
            with suppress(asyncio.TimeoutError):
                await workflow.wait_condition(lambda: self._woken, timeout=request.pause)
            self._parked = None

    @workflow.signal
    def wake(self) -> None:
        """Look at the session now."""
        self._woken = True

    @workflow.query
    def parked(self) -> JSON | None:
        """The session that the workflow waits for, as it was last; None while it looks."""
        return self._parked


async def negotiated(request: Request) -> JSON:
    """What came of a negotiation, for a workflow: ``sessionId``, ``state``, ``outcome``, ``agreed`` (terms or None)."""
    return await workflow.execute_child_workflow(Negotiate.run, request, id=(await _look(request))["sessionId"])


async def wake(client: Client, session: str) -> None:
    """Have a session looked at now, if a workflow waits for it."""
    try:
        await client.get_workflow_handle_for(Negotiate.run, session).signal(Negotiate.wake)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise


__all__ = ["Negotiate", "Negotiation", "Request", "negotiated", "wake"]
