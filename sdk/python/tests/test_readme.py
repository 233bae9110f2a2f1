"""The program of README.md runs as it is written."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from test_agent import BUYER, COMPLIANCE, Cups, seller

from parley_asp import Agent, Deal, Decision, Inform
from parley_asp.testing import Broker, Human

README = Path(__file__).parent.parent / "README.md"


def test_readme(broker: Broker, human: Callable[[str], Human], tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found
    program = tmp_path / "buyer.py"
    program.write_text(found[1])
    env = {**os.environ, "PARLEY_URL": broker.url, "PARLEY_TOKEN": BUYER}

    async def main() -> str:
        colleague: Agent[Cups] = Agent(url=broker.url, token=COMPLIANCE, terms=Cups)

        @colleague.on_check
        async def check(deal: Deal[Cups]) -> Decision:
            assert deal.check is not None
            return Inform.result(deal.check, assessment="fine")

        async with seller(broker, least=95), colleague, human("human://acme.com/alice") as alice:
            buys = await asyncio.create_subprocess_exec(sys.executable, str(program), env=env, stdout=subprocess.PIPE)
            await alice.decides("approved")
            said, _ = await asyncio.wait_for(buys.communicate(), 60)
        return said.decode()

    assert asyncio.run(main()) == "completed 95\n"
