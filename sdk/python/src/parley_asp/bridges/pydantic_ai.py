"""Pydantic AI: a model's call of the tool ``negotiate`` is deferred until the negotiation is over.

::

    bridge = Negotiation(agent, key="order 7")
    assistant = Agent(model, tools=[bridge.tool], output_type=[str, DeferredToolRequests])
    result = await assistant.run("Buy cups")                          # ends with DeferredToolRequests: store the messages
    results = await bridge.resume(result.output)                      # when something happened: None while one is not over
    await assistant.run(message_history=messages, deferred_tool_results=results)

``resume`` is safe to call at any time, by any process. The handlers of ``agent`` decide what is said; an ESCALATE is
decided by a human in parley's inbox.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import CallDeferred, DeferredToolRequests, DeferredToolResults, ModelRetry, Tool
from pydantic_ai.messages import ToolCallPart

from .._json import JSON
from ..deal import Deal
from ._negotiation import ABOUT, NAME, Negotiations, NotStarted, outcome, told


class Negotiation(Negotiations):
    """The tool ``negotiate``, and what goes on with its calls."""

    @property
    def tool(self) -> Tool[Any]:
        tool: Tool[Any] = Tool.from_schema(self._call, NAME, ABOUT, self.request.model_json_schema())
        return tool

    async def _call(self, **arguments: Any) -> JSON:
        try:
            deal = await self.look(arguments)
        except NotStarted as error:
            raise ModelRetry(str(error)) from None
        if not deal.over:
            raise CallDeferred(outcome(deal))
        return told(deal)

    async def resume(self, requests: DeferredToolRequests) -> DeferredToolResults | None:
        """The results of all calls of the tool, once every negotiation is over; of one that failed, why.

        Calls of other tools among the requests are the program's: add their results.
        """
        calls = [call for call in requests.calls if call.tool_name == NAME]
        found = await self.each([_arguments(call) for call in calls])
        if any(isinstance(f, Deal) and not f.over for f in found):
            return None
        results: dict[str, Any] = {call.tool_call_id: f if isinstance(f, str) else told(f) for call, f in zip(calls, found, strict=True)}
        return DeferredToolResults(calls=results)


def _arguments(call: ToolCallPart) -> JSON:
    return dict(call.args_as_dict())


__all__ = ["Negotiation"]
