"""A real broker for pytest, and a counterparty that follows a script.

Installed with the package: a test that names the fixture ``parley_broker`` has a broker of its own, and
``counterparty`` makes agents for it. The broker is the program ``parley`` that comes with the wheel.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import socket
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ._json import JSON, loads
from .acts import Accept, Act, Counter, Decision, Inform, Propose, Reject
from .agent import SERVING, Agent
from .deal import Deal, Offer
from .faults import Faults


def _free() -> int:
    """A free port below those that systems give to connections, one of which would take it before the broker or between two starts."""
    while True:
        port = random.randrange(10_000, 32_768)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


class Broker:
    """A broker in a process of its own. Its ports and its data outlive a kill."""

    def __init__(self, data: Path, *, dev: bool = True) -> None:
        self.data, self._dev = data, dev
        self.process: subprocess.Popen[str] | None = None
        self.key = ""  # verifies receipts and transcripts
        for left in range(3, -1, -1):
            self._http, self._nats = _free(), _free()
            try:
                self.start()
                break
            except RuntimeError as error:
                if not left or "address already in use" not in str(error):
                    raise  # else somebody was faster
        self.url, self.nats_url = f"http://127.0.0.1:{self._http}", f"nats://127.0.0.1:{self._nats}"
        self.faults = Faults(self._http, self._nats, self.restart)

    @staticmethod
    def program() -> str:
        """The program ``parley``: of ``PARLEY_BINARY``, of the installed wheel, or on the PATH."""
        here = shutil.which("parley", path=sysconfig.get_path("scripts"))
        found = os.environ.get("PARLEY_BINARY") or here or shutil.which("parley")
        if found is None:
            raise RuntimeError("no program parley: this wheel has none for this machine; put it on the PATH, or set PARLEY_BINARY")
        return found

    def start(self) -> None:
        """Start it, and return once it serves."""
        where = ["--data", str(self.data), "--listen", f"127.0.0.1:{self._nats}", "--http", f"127.0.0.1:{self._http}"]
        command = [self.program(), "serve", "--ready-json", "--private-webhooks", *(["--dev", "--test-clock"] if self._dev else []), *where]
        log = self.data.parent / f"{self.data.name}.log"
        with log.open("w") as said:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True)
        try:
            self.key = str(self._hear()["key"])
        except ValueError:
            raise RuntimeError("the broker does not start: " + log.read_text()) from None

    def _hear(self) -> JSON:
        assert self.process is not None and self.process.stdout is not None
        answer: JSON = loads(self.process.stdout.readline())
        return answer

    def advance(self, by: str) -> str:
        """Move the broker's clock, such as by ``24h``; returns its time. Deadlines that have passed have ended what they end.

        The agents of this process look at their sessions again, since an offer that expires is no news.
        """
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.write(f"advance {by}\n")
        self.process.stdin.flush()
        answer = self._hear()
        if "error" in answer:
            raise ValueError(answer["error"])
        for agent in list(SERVING):
            agent.look_again()
        return str(answer["now"])

    def kill(self) -> None:
        """End it without a word, as a power failure does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                assert pipe is not None
                pipe.close()
            self.process = None

    def restart(self) -> None:
        """Kill it, and start it on the same data."""
        self.kill()
        self.start()

    def close(self) -> None:
        """End it, and what is in front of it."""
        self.kill()
        self.faults.close()


class Counterparty:
    """An agent that follows a script: it accepts the invitation, then plays one step each time it is its turn."""

    def __init__(self, broker: Broker, uri: str) -> None:
        self.uri = uri
        self.agent: Agent[Any] = Agent(url=broker.url, token=uri)
        self._script: list[Callable[[Deal[Any]], Act]] = []
        self._came: asyncio.Queue[Offer[Any]] = asyncio.Queue()
        self._seen: set[str] = set()
        self.agent.on_invitation(lambda deal: Accept("invitation"))
        self.agent.on_turn(self._plays)

    def offers(self, **terms: Any) -> Counterparty:
        """Offer these terms next, instead of what is on the table."""
        self._script.append(lambda deal: Counter(deal.their_offer, terms) if deal.their_offer else Propose(terms))
        return self

    def accepts(self) -> Counterparty:
        """Accept what is on the table."""
        self._script.append(lambda deal: Accept(deal.their_offer))
        return self

    def rejects(self, reason: str = "no") -> Counterparty:
        """Reject what is on the table."""
        self._script.append(lambda deal: Reject(deal.their_offer, reason))
        return self

    async def expects_offer(self, seconds: float = 30, **terms: Any) -> Offer[Any]:
        """The next offer of the other side, which has these terms among its own."""
        offer = await asyncio.wait_for(self._came.get(), seconds)
        wrong = {name: offer.raw.get(name) for name, value in terms.items() if offer.raw.get(name) != value}
        assert not wrong, f"{offer.text}: expected {terms}"
        return offer

    def _plays(self, deal: Deal[Any]) -> Decision:
        offer = deal.their_offer
        if offer and offer.id not in self._seen:
            self._seen.add(offer.id)
            self._came.put_nowait(offer)
        if deal.agreed or not self._script:
            return None
        step = self._script[0](deal)
        self._script.pop(0)
        return step

    async def __aenter__(self) -> Counterparty:
        await self.agent.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.agent.close()


class Human:
    """Somebody who decides escalations."""

    def __init__(self, broker: Broker, uri: str) -> None:
        self.agent: Agent[Any] = Agent(url=broker.url, token=uri)

    async def decides(self, decision: str = "approved", seconds: float = 30, **data: Any) -> None:
        """Wait for an escalation, and decide it: ``approved``, ``denied``, ``guidance`` or ``modified``."""

        async def asked() -> Deal[Any]:
            while True:
                found = await self.agent.call("escalation.list", {})
                for row in found["escalations"]:
                    return await self.agent.deal(row["sessionId"])
                await asyncio.sleep(0.05)

        deal = await asyncio.wait_for(asked(), seconds)
        item = next(i for i in deal.open if i.kind == "escalation")
        said: Mapping[str, Any] = {"type": "resolution", "data": {"escalationId": item.id, "decision": decision, **data}}
        await self.agent.say(deal, Inform({}, to=item.id, also=said))

    async def __aenter__(self) -> Human:
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.agent.close()


@pytest.fixture
def parley_broker() -> Iterator[Broker]:
    """A broker of the test's own, without logins: an agent's URI is its token."""
    with tempfile.TemporaryDirectory(prefix="parley-") as data:
        b = Broker(Path(data) / "data")
        try:
            yield b
        finally:
            b.close()


@pytest.fixture
def counterparty(parley_broker: Broker) -> Callable[[str], Counterparty]:
    """Makes counterparties: ``async with counterparty("agent://widgets.co/seller").offers(price=5): …``."""
    return lambda uri: Counterparty(parley_broker, uri)


@pytest.fixture
def human(parley_broker: Broker) -> Callable[[str], Human]:
    """Makes people who decide: ``await human("human://acme.com/alice").decides("approved")``."""
    return lambda uri: Human(parley_broker, uri)
