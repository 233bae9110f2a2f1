"""LangGraph: a node that negotiates, parked while the session waits for others, resumed by the session's id.

::

    graph.add_node("negotiate", negotiation(agent, lambda state: agent.open(state["seller"], "cups", {"price": 60})))
    await graph.ainvoke(state, config=thread)          # runs until the other side, or a human, has to act
    await resume(graph, config=thread)                 # when something happened: a wake-up call, or a poll

The agent's handlers decide, with a model if they like. LangGraph runs a node again from its start when it is
resumed: that is safe, since handlers are reducers, and what was said on one head is said once. An ESCALATE is
decided by a human in parley's inbox; the graph only waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from langgraph.types import Command, interrupt

from ..agent import Agent
from ._negotiation import outcome

Opens = Callable[[Any], Awaitable[str]]


class Node(Protocol):
    """A node of a graph."""

    def __call__(self, state: Any) -> Awaitable[dict[str, Any]]: ...


def negotiation(agent: Agent[Any], opens: Opens, result: str = "deal") -> Node:
    """A node that negotiates until the session is over.

    Args:
        opens: makes the session of a state, as ``agent.open`` does; again it must be the same.
        result: the key of the state that gets what came of it: ``sessionId``, ``state``, ``outcome``, ``agreed`` (terms or None).
    """

    async def node(state: Any) -> dict[str, Any]:
        session = await opens(state)
        deal = await agent.reduce(session)
        while not deal.over:
            interrupt(outcome(deal))
            deal = await agent.reduce(session)  # what resumed it may be older than what there is
        return {result: outcome(deal)}

    return node


async def resume(graph: Any, config: Any) -> Any:
    """Go on with a parked graph: each node looks at its session, and parks again if it still waits for others."""
    waits = (await graph.aget_state(config)).interrupts
    ours = {i.id: True for i in waits if isinstance(i.value, dict) and "sessionId" in i.value}
    return await graph.ainvoke(Command(resume=ours or True), config=config)


def parked(result: Any) -> dict[str, Any] | None:
    """The first that a graph that was invoked is parked on: ``sessionId``, ``state``, ``waiting``; None if it has ended."""
    interrupts = result.get("__interrupt__") if isinstance(result, dict) else None
    return dict(interrupts[0].value) if interrupts else None


__all__ = ["Node", "negotiation", "parked", "resume"]
