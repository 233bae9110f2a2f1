"""The bridge to Temporal, with a Temporal server: the worker is killed while it is parked, and ends once.

Not among the tests that plain pytest collects, since the server takes minutes to build: .ci/temporal runs it.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from test_agent import BUYER, SELLER, run, seller, transcript

from parley_asp import Accept, Agent, Close
from parley_asp.testing import Broker, Human

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def temporal() -> Iterator[tuple[str, str]]:
    """A Temporal server: its address, and a namespace."""
    program = os.environ.get("TEMPORAL_BINARY")
    assert program, "no TEMPORAL_BINARY: .ci/temporal builds it of this folder"
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
            # -6: temporalio's core may abort a Python that is already ending (temporalio/sdk-python#300).
            assert process.returncode in (0, -6) and re.match(r"over completed .*price\W+95\b", said.decode()), said
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
