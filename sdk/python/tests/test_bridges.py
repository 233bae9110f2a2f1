"""The bridges to frameworks: the process is killed while its run is parked, and what goes on later says nothing twice."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest
from test_agent import BUYER, SELLER, run, seller, transcript

from parley_asp import Agent, Close, Refusal
from parley_asp.testing import Broker, Human
from parley_asp.tools import NegotiationTools

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("framework", ["langchain", "langgraph", "openai_agents", "pydantic_ai"])
def test_killed_while_parked(framework: str, broker: Broker, human: Callable[[str], Human], tmp_path: Path) -> None:
    env = {**os.environ, "PARLEY_URL": broker.url, "PARLEY_TOKEN": BUYER, "PARKED": str(tmp_path / "parked"), "STAYS": "1"}
    program = str(EXAMPLES / f"{framework}_buyer.py")

    async def goes_on() -> str:
        """Run the program until it is parked, and kill it there."""
        child = await asyncio.create_subprocess_exec(sys.executable, program, env=env, stdout=subprocess.PIPE)
        assert child.stdout is not None
        said = (await child.stdout.readline()).decode().strip()
        if said.startswith("parked"):
            child.kill()
        await child.wait()
        return said

    async def main() -> None:
        said = [await goes_on()]
        assert said[0].startswith("parked"), said
        async with seller(broker, least=95) as sells, human("human://acme.com/alice") as alice:

            async def state() -> str:
                (row,) = (await sells.call("session.list", {}))["sessions"]
                return str(row["state"])

            paused = 0
            while said[-1].startswith("parked"):
                said.append(await goes_on())
                if await state() == "ESCALATED":
                    paused += 1
                    if paused == 2:  # it was killed, and went on, while it waits for a human
                        await alice.decides("approved")
                assert len(said) < 30, said
            assert said[-1].startswith("over completed") and re.search(r"price\W+95\b", said[-1]), said
            assert (framework == "langgraph") != (f'<quote from="{SELLER}">' in said[-1]), said  # what a model reads is fenced
            (row,) = (await sells.call("session.list", {}))["sessions"]
            acts = [act for _, act in await transcript(sells, row["sessionId"])]
            assert [acts.count(a) for a in ("ESCALATE", "CLOSE", "COUNTER")] == [1, 1, 5], acts

    run(main())


class Two(TypedDict, total=False):
    """The state of a graph that negotiates twice at once."""

    cups: dict[str, Any]
    plates: dict[str, Any]


def test_two_parked(broker: Broker) -> None:
    """A graph that is parked on two sessions at once goes on with both."""
    from langgraph.checkpoint.memory import MemorySaver
    from langgraph.graph import START, StateGraph

    from parley_asp.bridges.langgraph import negotiation, parked, resume

    buyer: Agent[Any] = Agent(url=broker.url, token=BUYER)
    buyer.on_turn(lambda deal: Close.completed() if deal.agreed else None)

    def opens(subject: str) -> Callable[[Any], Awaitable[str]]:
        return lambda _: buyer.open(SELLER, subject, {"price": 100, "currency": "EUR"})

    async def main() -> None:
        graph = StateGraph(Two)
        for subject in ("cups", "plates"):
            graph.add_node(f"buy {subject}", negotiation(buyer, opens(subject), result=subject))
            graph.add_edge(START, f"buy {subject}")
        app = graph.compile(checkpointer=MemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        result: Any = await app.ainvoke({}, config=thread)
        assert len(result["__interrupt__"]) == 2
        async with seller(broker):
            while parked(result):
                await buyer.call("turn.wait", {"seconds": 1})
                result = await resume(app, thread)
        assert [result[subject]["agreed"]["price"] for subject in ("cups", "plates")] == [100, 100]
        await buyer.close()

    run(main())


def test_langchain_tools(broker: Broker) -> None:
    """A LangChain model has the tools of the kit, with their schemas, and reads what they answer."""
    from parley_asp.bridges.langchain import tools

    async def main() -> None:
        async with NegotiationTools(broker.url, BUYER) as kit:
            found = {tool.name: tool for tool in tools(kit)}
            assert list(found) == [tool.name for tool in kit.tools]
            assert found["open_negotiation"].args["purpose"]["type"] == "string"
            opened = await found["open_negotiation"].ainvoke({"with": [SELLER], "purpose": "cups", "terms": {"price": 60}, "seconds": 1})
            listed = await found["list_negotiations"].ainvoke({})
            assert json.loads(opened)["negotiationId"] in listed

    run(main())


def assistant_of_openai(bridge: Any, arguments: str) -> Any:
    """An assistant whose model calls the tool once, with these arguments, and says what it got."""
    from agents import Agent as Assistant
    from agents import Model, ModelResponse, Usage, set_tracing_disabled
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Calls(Model):
        async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:
            last = input[-1] if isinstance(input, list) else {}
            if last.get("type") == "function_call_output":
                text = ResponseOutputText(annotations=[], text=last["output"], type="output_text")
                message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
                return ModelResponse(output=[message], usage=Usage(), response_id=None)
            call = ResponseFunctionToolCall(arguments=arguments, call_id="call_1", name="negotiate", type="function_call")
            return ModelResponse(output=[call], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
            raise NotImplementedError

    return Assistant(name="Buyer", tools=[bridge.tool], model=Calls())


@pytest.mark.parametrize("arguments", ['{"counterparty": ', "[1]", '{"subject": "cups"}'])
def test_openai_agents_reads_what_is_wrong(arguments: str, broker: Broker) -> None:
    """Also of arguments that are no JSON, which the framework parks by itself: the run goes on."""
    from agents import Runner, RunState

    from parley_asp.bridges.openai_agents import Negotiation

    async def main() -> None:
        agent: Agent[Any] = Agent(url=broker.url, token=BUYER)
        bridge = Negotiation(agent)
        assistant = assistant_of_openai(bridge, arguments)
        result = await Runner.run(assistant, "Buy cups")
        if result.interruptions:
            state: Any = await RunState.from_json(assistant, result.to_state().to_json())
            assert await bridge.resume(state)
            result = await Runner.run(assistant, state)
        assert "It does not begin" in result.final_output and "counterparty" in result.final_output
        await agent.close()

    run(main())


def test_token_expires_while_parked(broker: Broker) -> None:
    """The program is told, and no model: the negotiation is under way."""
    from agents import Runner, RunState
    from pydantic_ai import DeferredToolRequests
    from pydantic_ai.messages import ToolCallPart

    from parley_asp.bridges import openai_agents, pydantic_ai

    request = {"counterparty": SELLER, "subject": "cups", "terms": {"price": 60}}

    async def main() -> None:
        agent: Agent[Any] = Agent(url=broker.url, token=BUYER)
        late: Agent[Any] = Agent(url=broker.url, token="expired")
        assistant = assistant_of_openai(openai_agents.Negotiation(agent), json.dumps(request))
        parked = (await Runner.run(assistant, "Buy cups")).to_state().to_json()
        with pytest.raises(Refusal, match="unauthorized"):
            await openai_agents.Negotiation(late).resume(await RunState.from_json(assistant, parked))
        with pytest.raises(Refusal, match="unauthorized"):
            await pydantic_ai.Negotiation(late).resume(DeferredToolRequests(calls=[ToolCallPart("negotiate", request)]))
        assert not await openai_agents.Negotiation(agent).resume(await RunState.from_json(assistant, parked))
        await agent.close()
        await late.close()

    run(main())
