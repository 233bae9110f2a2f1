"""The bridges to frameworks: the process is killed while its run is parked, and what goes on later says nothing twice."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_agent import BUYER, SELLER, run, seller, transcript

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
            assert said[-1].startswith("over completed") and "'price': 95" in said[-1], said
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
