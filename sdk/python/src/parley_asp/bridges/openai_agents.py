"""OpenAI Agents: a model's call of the tool ``negotiate`` needs an approval, which the end of the negotiation gives.

::

    bridge = Negotiation(agent, key="order 7")
    assistant = Agent(name="Buyer", tools=[bridge.tool])
    result = await Runner.run(assistant, "Buy cups")                   # has interruptions: store result.to_state().to_json()
    state = await RunState.from_json(assistant, stored)
    if await bridge.resume(state):                                     # when something happened: False while one is not over
        result = await Runner.run(assistant, state)

``resume`` is safe to call at any time, by any process. The approval is none of a human: the handlers of ``agent`` decide
what is said, and an ESCALATE is decided by a human in parley's inbox.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agents import FunctionTool, RunState
from agents.tool_context import ToolContext

from .._json import JSON, dumps
from ..deal import Deal
from ._negotiation import ABOUT, NAME, Negotiations, told


class Negotiation(Negotiations):
    """The tool ``negotiate``, and what goes on with its calls."""

    @property
    def tool(self) -> FunctionTool:
        return FunctionTool(
            name=NAME,
            description=ABOUT,
            params_json_schema=self.request.model_json_schema(),
            on_invoke_tool=self._call,
            needs_approval=self._waits,
            strict_json_schema=False,  # terms may have members that are left out
        )

    async def _call(self, context: ToolContext[Any], arguments: str) -> str:
        found = await self.tried(_arguments(arguments))
        return found if isinstance(found, str) else dumps(told(found)).decode()

    async def _waits(self, context: Any, arguments: Mapping[str, Any], call_id: str) -> bool:
        return _waits(await self.tried(arguments))

    async def resume(self, state: RunState[Any, Any]) -> bool:
        """Let each call of the tool go on whose negotiation is over; reports whether all are."""
        ours = [item for item in state.get_interruptions() if item.tool_name == NAME]
        waits = [_waits(found) for found in await self.each([_arguments(item.arguments) for item in ours])]
        for item, waiting in zip(ours, waits, strict=True):
            if not waiting:
                state.approve(item)
        return not any(waits)


def _waits(found: Deal[Any] | str) -> bool:
    """Whether a call waits for its negotiation; one that failed does not, and says why."""
    return isinstance(found, Deal) and not found.over


def _arguments(text: str | None) -> JSON:
    """The arguments of a call; none of what is no JSON object, which the framework interrupts without asking the tool."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


__all__ = ["Negotiation"]
