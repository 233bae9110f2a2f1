"""The bridges to frameworks: the process is killed while its run is parked, and what goes on later says nothing twice."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from test_agent import BUYER, SELLER, run, seller, transcript

from parley_asp import Accept, Agent, Close, Refusal
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


@pytest.fixture(scope="module")
def temporal() -> Iterator[tuple[str, str]]:
    """A Temporal server: its address, and a namespace."""
    program = os.environ.get("TEMPORAL_BINARY")
    if not program:
        assert not os.environ.get("CI"), "no TEMPORAL_BINARY: .ci/sdk-python builds it of tests/temporal"
        pytest.skip("no TEMPORAL_BINARY")
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address, namespace = server.stdout.readline().split()
        yield address, namespace


def test_temporal_killed_while_parked(broker: Broker, human: Callable[[str], Human], temporal: tuple[str, str]) -> None:
    """The worker is killed while it waits for the seller, and while it waits for a human, who decides meanwhile."""
    from temporalio.client import Client
    from temporalio.service import RPCError

    from parley_asp.bridges.temporal import Negotiate

    address, namespace = temporal
    env = {**os.environ, "PARLEY_URL": broker.url, "PARLEY_TOKEN": BUYER, "TEMPORAL_ADDRESS": address, "TEMPORAL_NAMESPACE": namespace}

    async def worker() -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(sys.executable, str(EXAMPLES / "temporal_buyer.py"), env=env, stdout=subprocess.PIPE)

    async def main() -> None:
        client = await Client.connect(address, namespace=namespace)
        sells = seller(broker, least=95)

        async def rows() -> list[Any]:
            return list((await sells.call("session.list", {}))["sessions"])

        async def killed_once(state: str) -> None:
            """Run a worker until the workflow is parked in this state, and kill it there."""
            process = await worker()
            parked: Any = None
            while not parked or parked["state"] != state:
                assert process.returncode is None
                await asyncio.sleep(0.1)
                for row in await rows():
                    with suppress(RPCError):  # it may not have begun
                        parked = await client.get_workflow_handle_for(Negotiate.run, row["sessionId"]).query(Negotiate.parked)
            process.kill()
            await process.wait()

        await killed_once("INVITED")
        async with sells, human("human://acme.com/alice") as alice:
            await killed_once("ESCALATED")
            await alice.decides("approved")
            process = await worker()
            said, _ = await process.communicate()
            assert process.returncode == 0 and re.match(r"over completed .*price\W+95\b", said.decode()), said
            (row,) = await rows()
            acts = [act for _, act in await transcript(sells, row["sessionId"])]
            assert [acts.count(a) for a in ("ESCALATE", "CLOSE", "COUNTER")] == [1, 1, 5], acts

    asyncio.run(asyncio.wait_for(main(), 180))


def test_temporal_woken(broker: Broker, temporal: tuple[str, str]) -> None:
    """By signals alone, and also once its history is long, and it has begun anew."""
    from temporalio.client import Client
    from temporalio.worker import Worker

    from parley_asp.bridges.temporal import Negotiate, Negotiation, Request, wake

    async def main() -> None:
        buyer: Agent[Any] = Agent(url=broker.url, token=BUYER)
        buyer.on_turn(lambda deal: Close.completed() if deal.agreed else Accept(deal.their_offer))
        client = await Client.connect(temporal[0], namespace=temporal[1])
        session = await buyer.open(SELLER, "cups", {"price": 60}, key="woken")
        await wake(client, session)  # nothing waits for it
        async with Worker(client, task_queue="woken", workflows=[Negotiate], activities=[Negotiation(buyer).look]):
            request = Request(SELLER, "cups", {"price": 60}, key="woken", pause=86400)
            started = await client.start_workflow(Negotiate.run, request, id=session, task_queue="woken")
            latest = client.get_workflow_handle_for(Negotiate.run, session)
            while (await latest.describe()).run_id == started.first_execution_run_id:
                await wake(client, session)
                await asyncio.sleep(0.1)
            over = asyncio.create_task(started.result())
            async with seller(broker):
                while not over.done():
                    await wake(client, session)
                    await asyncio.wait([over], timeout=0.2)
            deal = await over
            assert (deal["sessionId"], deal["outcome"], deal["agreed"]["price"]) == (session, "completed", 120), deal
        await buyer.close()

    run(main())


@pytest.mark.parametrize(
    ("token", "counterparty", "kind"), [("wrong", SELLER, "unauthorized"), (BUYER, "nobody", "NotStarted"), (BUYER, BUYER, "NotStarted")]
)
def test_temporal_fails_once(token: str, counterparty: str, kind: str, broker: Broker, temporal: tuple[str, str]) -> None:
    """What stays refused is not tried again."""
    from temporalio.client import Client, WorkflowFailureError
    from temporalio.exceptions import ActivityError, ApplicationError
    from temporalio.worker import Worker

    from parley_asp.bridges.temporal import Negotiate, Negotiation, Request

    async def main() -> None:
        buyer: Agent[Any] = Agent(url=broker.url, token=token)
        client = await Client.connect(temporal[0], namespace=temporal[1])
        async with Worker(client, task_queue="refused", workflows=[Negotiate], activities=[Negotiation(buyer).look]):
            request = Request(counterparty, "cups", {"price": 60})
            with pytest.raises(WorkflowFailureError) as failed:
                await client.execute_workflow(Negotiate.run, request, id="refused", task_queue="refused")
        refused = failed.value.cause
        assert isinstance(refused, ActivityError) and isinstance(refused.cause, ApplicationError)
        assert refused.cause.non_retryable and refused.cause.type == kind, refused.cause
        await buyer.close()

    run(main())
