"""Kills, clocks, keys and servers that are not there: nothing is lost, and nothing is said twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter as Count
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from test_agent import BUYER, SELLER, Cups, run, seller, transcript

from parley_asp import Accept, Agent, Close, Counter, Deal, Decision, NoAnswer, ParleyError, Refusal
from parley_asp._json import plain
from parley_asp._transport import patiently
from parley_asp.testing import Broker
from parley_asp.verify import verify_transcript

BUYS = textwrap.dedent("""
    import asyncio, os, signal, sys
    from decimal import Decimal
    from pydantic import BaseModel
    from parley_asp import Accept, Agent, Close, Counter

    class Cups(BaseModel):
        price: Decimal
        currency: str = "EUR"

    buyer = Agent.from_env(terms=Cups)
    dies = int(sys.argv[1])
    steps = 0

    def step():
        global steps
        steps += 1
        if steps == dies:
            os.kill(os.getpid(), signal.SIGKILL)

    @buyer.on_turn
    async def decide(deal):
        step()
        await asyncio.sleep(0)
        if deal.agreed:
            step()
            return Close.completed()
        step()
        if deal.their_offer.terms.price > 85:
            return Counter(deal.their_offer, Cups(price=deal.step(60, 100)))
        return Accept(deal.their_offer)

    said = buyer._transport.say
    async def say(*args):
        step()
        answer = await said(*args)
        step()  # the answer is lost with the process
        return answer
    buyer._transport.say = say

    async def main():
        async with buyer:
            deal = await buyer.negotiate("agent://widgets.co/seller", "cups", Cups(price=Decimal(60)))
            print(deal.id, deal.agreed.terms.price)
    asyncio.run(main())
""")


def test_agent_killed_at_each_step(broker: Broker, tmp_path: Path) -> None:
    """The agent dies at its first, second, … step; the next one goes on, and the transcript is that of one."""
    program = tmp_path / "buyer.py"
    program.write_text(BUYS)

    def buys(dies: int, agent: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PARLEY_URL": broker.url, "PARLEY_TOKEN": agent}
        return subprocess.run([sys.executable, str(program), str(dies)], env=env, capture_output=True, text=True, timeout=60, check=False)

    async def main() -> None:
        async with seller(broker) as sells:
            for n in range(1, 100):
                agent = f"{BUYER}-{n}"
                first = await asyncio.to_thread(buys, n, agent)
                second = await asyncio.to_thread(buys, 0, agent) if first.returncode == -signal.SIGKILL else first
                assert second.returncode == 0, second.stderr
                session, price = second.stdout.split()
                said = [act for _, act in await transcript(sells, session)]
                assert price == "80" and said == ["PROPOSE", "ACCEPT", "PROPOSE", *["COUNTER"] * 4, "ACCEPT", "CLOSE"][: len(said)], said
                assert Count(said)["ACCEPT"] == 2 and Count(said)["CLOSE"] == 1, said
                if first.returncode == 0:
                    assert n > 10
                    return
            raise AssertionError("it has no end")

    asyncio.run(asyncio.wait_for(main(), 240))


def test_broker_killed(broker: Broker) -> None:
    """The broker dies whenever something was said; handlers count what they decided."""
    buyer = Agent(url=broker.url, token=BUYER, terms=Cups)

    @buyer.on_turn
    async def decide(deal: Deal[Cups]) -> Decision:
        await asyncio.to_thread(broker.restart)
        if deal.agreed:
            return Close.completed()
        if deal.their_offer.terms.price > 85:
            return Counter(deal.their_offer, Cups(price=deal.step(60, 100)))
        return Accept(deal.their_offer)

    async def main() -> None:
        async with seller(broker) as sells, buyer:
            deal = await buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60)))
            said = [act for _, act in await transcript(sells, deal.id)]
            assert deal.agreed and deal.agreed.terms.price == 80 and len(said) == 9, said

    asyncio.run(asyncio.wait_for(main(), 120))


@pytest.fixture
def keys(tmp_path: Path) -> Any:
    """A broker with logins, and what registers an agent there: its seeds, and a token."""
    data = tmp_path / "keyed"
    b = Broker(data, dev=False)

    def parley(*args: str) -> str:
        return subprocess.run(
            [Broker.program(), *args, "--data", str(data), "--url", b.nats_url], capture_output=True, text=True, check=True
        ).stdout

    def add(uri: str) -> dict[str, str]:
        out = tmp_path / (uri.rpartition("/")[2] + ".nk")
        parley("agent", "add", uri, "--key-out", str(out))
        token = next(word for word in parley("token", "add", uri).split() if word.startswith("parley_"))
        return {"agent": uri, "seed": out.read_text().strip(), "login": out.with_suffix(".login.nk").read_text().strip(), "token": token}

    yield b, add
    b.kill()


def buying(**options: Any) -> Agent[Cups]:
    buyer = Agent(terms=Cups, **options)

    @buyer.on_turn
    async def decide(deal: Deal[Cups]) -> Decision:
        if deal.agreed:
            return Close.completed()
        if deal.their_offer.terms.price > 85:
            return Counter(deal.their_offer, Cups(price=deal.step(60, 100)))
        return Accept(deal.their_offer)

    return buyer


def test_own_keys(keys: Any) -> None:
    """One's own key signs over NATS and over HTTP, with a clock ten minutes off."""
    broker, add = keys
    buys, sells = add(BUYER), add(SELLER)

    async def main() -> None:
        over_nats = buying(url=broker.nats_url, agent=BUYER, seed=buys["seed"], login=buys["login"])
        over_http = buying(url=broker.url, agent=BUYER, seed=buys["seed"], token=buys["token"])
        async with seller(broker, url=broker.nats_url, token="", agent=SELLER, seed=sells["seed"], login=sells["login"]) as s:
            for n, buyer in enumerate((over_nats, over_http)):
                buyer._transport._ahead = 600.0  # type: ignore[attr-defined]  # as if the clock were off
                async with buyer:
                    deal = await buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60)), key=str(n))
                    assert deal.agreed and deal.agreed.terms.price == 80
                    assert len(await transcript(s, deal.id)) == 9
                    page = await s.call("session.messages", {"sessionId": deal.id})
                    record = b"\n".join(rfc8785.dumps(plain(e)) for e in page["messages"])
                    assert verify_transcript(record, broker.key, length=9, head=deal.head) == []
                    assert verify_transcript(record.replace(b'"price":60', b'"price":61'), broker.key) != []

    run(main())


def test_another_contract() -> None:
    """A broker that speaks another contract is refused before anything is said to it."""
    asked: list[str] = []

    class Newer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = b'{"name":"parley","version":"9.0.0","contract":2}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Newer)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    async def main() -> None:
        agent: Agent[Any] = Agent(url=f"http://127.0.0.1:{server.server_port}", token=BUYER)
        with pytest.raises(Refusal, match="contract 2"):
            await agent.call("session.list", {})
        await agent.close()

    try:
        run(main())
    finally:
        server.shutdown()
        server.server_close()
    assert asked == ["/v1/asp"]


def test_wrong_credentials_and_no_server(keys: Any) -> None:
    broker, add = keys
    buys = add(BUYER)

    async def main() -> None:
        wrong: Agent[Any] = Agent(url=broker.url, token=buys["token"][:-4] + "aaaa")
        with pytest.raises(Refusal) as refused:
            await wrong.call("session.list", {})
        assert refused.value.code == "unauthorized" and buys["token"][:-4] not in str(refused.value)
        other = add(SELLER)
        forged: Agent[Any] = Agent(url=broker.url, token=buys["token"], agent=BUYER, seed=other["seed"])
        async with forged:
            with pytest.raises(Refusal) as refused:
                await forged.negotiate(SELLER, "cups", timeout=10)
            assert refused.value.code == "signature_invalid" and other["seed"] not in repr(refused.value)
        for url in ("http://127.0.0.1:1", "nats://127.0.0.1:1"):
            gone: Agent[Any] = Agent(url=url, token="t", agent=BUYER, seed=buys["seed"])
            began = time.monotonic()
            with pytest.raises(NoAnswer):
                await patiently(lambda gone=gone: gone._transport.call("session.list", {}), 1)  # type: ignore[misc]
            assert time.monotonic() - began < 15
            await gone.close()
        await wrong.close()
        with pytest.raises(ParleyError):
            Agent(url="http://127.0.0.1:1")

    run(main())
