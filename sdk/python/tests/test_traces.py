"""Acts and calls join the trace that the program names: spans of a real broker say so."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter as Count
from collections.abc import Iterator
from contextvars import ContextVar
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from test_agent import BUYER, SELLER, Cups, run, seller
from test_faults import NINE, buying
from test_faults import keys as keys  # a fixture

from parley_asp import Accept, Agent, sync
from parley_asp._transport import trace_of
from parley_asp.testing import Broker
from parley_asp.tools import NegotiationTools

ONE, TWO, THREE = (f"00-{n * 32}-{n * 16}-01" for n in "123")
MINE = NINE[::2]  # what the buyer says

CURRENT: ContextVar[str | None] = ContextVar("CURRENT", default=None)


class Spans:
    """What a broker exports by OTLP."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def joined(self, traceparent: str) -> list[str]:
        """Names of the spans in the trace of a traceparent, below others."""
        trace = re.escape(bytes.fromhex(traceparent.split("-")[1]))
        span = rb"\x0a\x10" + trace + rb"\x12\x08.{8}\x22\x08.{8}\x2a(.)"  # the fields 1 to 5 of OTLP's Span
        return [body[m.end() : m.end() + m[1][0]].decode() for body in self.bodies for m in re.finditer(span, body, re.DOTALL)]

    def has(self, traceparent: str, *names: str) -> bool:
        """Whether these spans come to be in the trace, and no other acts."""
        for _ in range(400):
            found = Count(self.joined(traceparent))
            if not Count(names) - found:
                return not Count({name: n for name, n in found.items() if name.isupper()}) - Count(names)
            time.sleep(0.05)
        return False


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """A collector, for the brokers that are started after it."""
    found = Spans()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    said = {"EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "BSP_SCHEDULE_DELAY": "50", "METRICS_EXPORTER": "none"}
    for name, value in {**said, "LOGS_EXPORTER": "none"}.items():
        monkeypatch.setenv(f"OTEL_{name}", value)
    yield found
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("over", ["http", "nats"])
def test_one_negotiation_is_one_trace(spans: Spans, keys: Any, over: str) -> None:
    """Each has that of its caller, whatever the agent was started in, and waits join none."""
    broker, add = keys
    buys, sells = add(BUYER), add(SELLER)
    own = {"agent": BUYER, "seed": buys["seed"]}
    way = {"url": broker.url, "token": buys["token"]} if over == "http" else {"url": broker.nats_url, "login": buys["login"]}

    async def main() -> None:
        async def bought(trace: str) -> None:
            CURRENT.set(trace)
            assert (await buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60)), key=trace)).agreed

        CURRENT.set(THREE)
        buyer = buying(**own, **way, traceparent=CURRENT.get)
        sells_at_80 = seller(broker, agent=SELLER, seed=sells["seed"], token=sells["token"])
        async with sells_at_80, buyer:
            await asyncio.gather(*(asyncio.create_task(bought(trace)) for trace in (ONE, TWO)))
            await buyer.find("cups")
            CURRENT.set(ONE + "\r\nCookie: x")  # which nobody could send
            await buyer.find("cups")

    run(main())
    for trace in (ONE, TWO):
        assert spans.has(trace, *MINE, "session.snapshot") and "turn.wait" not in spans.joined(trace)
    assert spans.has(THREE, "agent.search") and spans.joined(THREE) == ["agent.search"]


def test_what_the_program_says(spans: Spans, broker: Broker) -> None:
    """``say`` joins the trace of its caller, and so do ``reduce``, and an agent without asyncio."""

    async def main() -> str:
        buyer, sells = buying(url=broker.url, token=BUYER, traceparent=CURRENT.get), seller(broker, traceparent=CURRENT.get)
        CURRENT.set(ONE)
        session = await buyer.open(SELLER, "cups", Cups(price=Decimal(90)))
        CURRENT.set(TWO)
        await sells.reduce(session)
        CURRENT.set(ONE)
        await buyer.reduce(session)
        CURRENT.set(THREE)
        deal = await sells.deal(session)
        await sells.say(deal, Accept(deal.their_offer))
        CURRENT.set(None)
        await buyer._ask("turn.wait", {"sessionId": session, "seconds": 0})
        assert (await buyer.reduce(session)).over
        assert spans.has(TWO, "ACCEPT") and spans.has(THREE, "ACCEPT") and spans.has(ONE, "PROPOSE", "PROPOSE", "CLOSE")
        assert "turn.wait" not in spans.joined(ONE)
        for agent in (buyer, sells):
            await agent.close()
        return session

    session = run(main())
    blocks: sync.Agent[Any] = sync.Agent(url=broker.url, token=BUYER, traceparent=CURRENT.get)
    token = CURRENT.set(TWO)
    blocks.call("session.get", {"sessionId": session})
    CURRENT.reset(token)
    blocks.close()
    assert spans.has(TWO, "ACCEPT", "session.get")


def test_tools(spans: Spans, broker: Broker) -> None:
    async def main() -> None:
        async with NegotiationTools(broker.url, BUYER, traceparent=lambda: ONE) as tools:
            await tools.call("open_negotiation", {"with": [SELLER], "purpose": "cups"})

    run(main())
    assert spans.has(ONE, "PROPOSE")


def test_what_is_no_traceparent() -> None:
    for wrong in (None, "", "00", ONE.upper().replace("1", "A"), ONE + "\n", ONE + "-1", " " + ONE):
        assert trace_of(lambda wrong=wrong: wrong) is None  # type: ignore[misc]
    assert trace_of(lambda: ONE) == ONE and trace_of(None) is None
    assert Agent(url="http://127.0.0.1:1", token="x", traceparent=lambda: ONE)
