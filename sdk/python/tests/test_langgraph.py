"""LangGraph: the process is killed while its graph is parked, and what goes on later says nothing twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from test_agent import BUYER, run, seller, transcript

from parley_asp.testing import Broker, Human

PROGRAM = Path(__file__).parent.parent / "examples/langgraph_buyer.py"


def test_killed_while_parked(broker: Broker, human: Callable[[str], Human], tmp_path: Path) -> None:
    env = {**os.environ, "PARLEY_URL": broker.url, "PARLEY_TOKEN": BUYER, "CHECKPOINTS": str(tmp_path / "graph.db"), "STAYS": "1"}

    async def goes_on() -> str:
        """Run the program until it is parked, and kill it there."""
        program = await asyncio.create_subprocess_exec(sys.executable, str(PROGRAM), env=env, stdout=subprocess.PIPE)
        assert program.stdout is not None
        said = (await program.stdout.readline()).decode().strip()
        if said.startswith("parked"):
            program.kill()
        await program.wait()
        return said

    async def main() -> None:
        said = [await goes_on()]
        assert said == ["parked INVITED"]
        async with seller(broker, least=95) as sells, human("human://acme.com/alice") as alice:
            while not said[-1].startswith("over"):
                said.append(await goes_on())
                if said[-1] == "parked ESCALATED" and said.count("parked ESCALATED") == 2:
                    await alice.decides("approved")
                assert len(said) < 30, said
            assert said[-1] == "over completed {'currency': 'EUR', 'price': 95}", said
            (row,) = (await sells.call("session.list", {}))["sessions"]
            acts = [act for _, act in await transcript(sells, row["sessionId"])]
            assert [acts.count(a) for a in ("ESCALATE", "CLOSE", "COUNTER")] == [1, 1, 5], acts

    run(main())
