"""LangChain: the tool ``negotiate``, which parks its agent until the negotiation is over, and the five tools of MCP.

::

    assistant = create_agent(model, [negotiate(agent, key="order 7")], checkpointer=checkpoints)
    result = await assistant.ainvoke({"messages": "Buy cups"}, config=thread)    # parked(result) says on what
    result = await resume(assistant, config=thread)                              # when something happened

    async with NegotiationTools(url, token) as kit:                              # or the model decides each act
        assistant = create_agent(model, tools(kit), system_prompt=kit.instructions)

The handlers of ``agent`` decide what is said; an ESCALATE is decided by a human in parley's inbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.types import interrupt

from .._json import JSON
from ..agent import Agent
from ..tools import NegotiationTools, Tool
from ._negotiation import ABOUT, NAME, Negotiations, NotStarted, outcome, told
from .langgraph import parked, resume


def negotiate(agent: Agent[Any], key: str = "", mode: str = "asp/1", policy: Mapping[str, Any] | None = None) -> BaseTool:
    """The tool ``negotiate``. Its agent needs a checkpointer; ``key`` tells two tasks with the same request apart."""
    negotiations = Negotiations(agent, key, mode, policy)

    async def call(**arguments: Any) -> JSON:
        try:
            deal = await negotiations.look(arguments)
            while not deal.over:
                interrupt(outcome(deal))
                deal = await negotiations.look(arguments)  # what resumed it may be older than what there is
        except NotStarted as error:
            raise ToolException(str(error)) from None
        return told(deal)

    schema = negotiations.request.model_json_schema()
    return StructuredTool(name=NAME, description=ABOUT, args_schema=schema, coroutine=call, handle_tool_error=True)


def tools(kit: NegotiationTools) -> list[BaseTool]:
    """The tools of the kit, for any model that takes tools."""

    def of(tool: Tool) -> BaseTool:
        async def call(**arguments: Any) -> str:
            return await kit.call(tool.name, arguments)

        return StructuredTool(name=tool.name, description=tool.description, args_schema=tool.parameters, coroutine=call)

    return [of(tool) for tool in kit.tools]


__all__ = ["negotiate", "parked", "resume", "tools"]
