"""The snippets of RECIPES.md run as they are written."""

from __future__ import annotations

import asyncio
import base64
import re
import socket
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span
from test_agent import BUYER, COMPLIANCE, SELLER, Cups, run, seller
from test_traces import ONE, Spans
from test_traces import spans as spans  # a fixture

from parley_asp import Accept, Agent, Commit, Counter, Deal, Decision
from parley_asp.testing import Broker, Counterparty, Human

ARBITER = "agent://court.example/arbiter"
PAGE = (Path(__file__).parents[2] / "RECIPES.md").read_text()
PRELUDE = re.findall(r"```python\n(.*?)```", PAGE.partition("\n## ")[0], re.DOTALL)
RUN: set[str] = set()
Load = Callable[..., Any]


@pytest.fixture
def load(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Runs the nth snippet of a recipe, as an agent's program; returns its names."""

    def loaded(title: str, token: str = BUYER, nth: int = 0) -> Any:
        RUN.add(f"{title} {nth}")
        monkeypatch.setenv("PARLEY_URL", broker.url)
        monkeypatch.setenv("PARLEY_TOKEN", token)
        snippet = re.findall(r"```python\n(.*?)```", PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0], re.DOTALL)[nth]
        names: dict[str, Any] = {"__name__": "recipe"}
        exec(compile(PRELUDE[0] + snippet, title, "exec", dont_inherit=True), names)
        return names

    return loaded


async def bought(agent: Agent[Any]) -> Deal[Any]:
    async with agent:
        return await agent.negotiate(SELLER, "cups", Cups(price=Decimal(60)))


def test_ladder(broker: Broker, load: Load) -> None:
    async def main() -> None:
        async with seller(broker):
            deal = await bought(load("Haggle on a ladder")["agent"])
        assert deal.agreed and (deal.outcome, deal.agreed.raw["price"]) == ("completed", 80)

    run(main())


@pytest.mark.parametrize("decision", ["approved", "denied"])
def test_approval(broker: Broker, load: Load, human: Callable[[str], Human], decision: str) -> None:
    async def main() -> None:
        agent = load("Have a human approve")["agent"]
        async with counterparty_of(broker) as other, human("human://acme.com/alice") as alice, agent:
            asked = asyncio.create_task(agent.negotiate(other.uri, "cups", Cups(price=Decimal(60)), timeout=20))
            await alice.decides(decision)
            while not (deals := [d async for d in deals_of(agent) if d.agreed or any(o.status == "rejected" for o in d.offers)]):
                await agent.call("turn.wait", {"seconds": 1})
            assert bool(deals[0].agreed) == (decision == "approved")
            asked.cancel()

    run(main())


def counterparty_of(broker: Broker) -> Counterparty:
    return Counterparty(broker, SELLER).offers(price=75, currency="EUR")


async def deals_of(agent: Agent[Any]) -> Any:
    for row in (await agent.call("session.list", {}))["sessions"]:
        yield await agent.deal(row["sessionId"])


def test_check(broker: Broker, load: Load) -> None:
    async def main() -> None:
        colleague = load("Have a colleague check", COMPLIANCE, 1)["agent"]
        async with counterparty_of(broker), colleague:
            deal = await bought(load("Have a colleague check")["agent"])
        assert deal.agreed and deal.delegation(COMPLIANCE).result == {"fine": True}

    run(main())


def test_deadline(broker: Broker, load: Load) -> None:
    sells: Agent[Any] = seller(broker)

    @sells.on_turn
    def decide(deal: Deal[Any]) -> Decision:
        until = (datetime.now(timezone.utc) + timedelta(minutes=5, seconds=2)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return None if deal.agreed else Counter(deal.their_offer, {"price": 75, "currency": "EUR"}, also={"validUntil": until})

    async def main() -> None:
        async with sells:
            deal = await bought(load("Wait for a deadline")["agent"])
        assert deal.agreed and deal.agreed.expires

    run(main())


def test_tender(broker: Broker, load: Load) -> None:
    async def main() -> None:
        sellers = {uri: price for uri, price in (("agent://widgets.co/seller", 75), ("agent://cheap.co/seller", 70))}
        others = [Counterparty(broker, uri).offers(price=price, currency="EUR") for uri, price in sellers.items()]
        sellers["agent://odd.co/seller"] = 1
        async with others[0], others[1], Counterparty(broker, "agent://odd.co/seller").offers(price=1, currency="KWD"):
            deals = await load("Ask several sellers")["cheapest"](list(sellers), datetime.now(timezone.utc) + timedelta(minutes=1))
        assert [(d.counterparty, bool(d.agreed), d.over) for d in deals] == [
            ("agent://cheap.co/seller", True, False),
            ("agent://widgets.co/seller", False, True),
            ("agent://odd.co/seller", False, True),
        ]

    run(main())


def test_wakeups(broker: Broker, load: Load) -> None:
    """A seller that is only called sells."""
    secret = "whsec_" + base64.b64encode(b"k" * 24).decode()
    buyer = load("Haggle on a ladder")["agent"]
    sleeper = load("Sleep, and be called", SELLER)  # last, since each call reads the environment
    handler = sleeper["on_lambda"](secret)
    answers: list[int] = []

    class Sleeper(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            answers.append(handler({"headers": dict(self.headers), "body": body}, None)["statusCode"])
            self.send_response(answers[-1])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Sleeper)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    async def main() -> None:
        await sleeper["register"](f"http://127.0.0.1:{server.server_port}/wake", secret)
        await sleeper["agent"].close()
        deal = await bought(buyer)
        assert deal.agreed and deal.agreed.raw["price"] == 60

    try:
        run(main())
    finally:
        server.shutdown()
        server.server_close()
    assert len(answers) > 1 and set(answers) == {204}


def test_fastapi(broker: Broker, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seller in FastAPI, which is only called, sells; and it refuses a call that is not signed."""
    secret = "whsec_" + base64.b64encode(b"k" * 24).decode()
    monkeypatch.setenv("WAKEUP_SECRET", secret)
    sleeper = load("Sleep, and be called", SELLER, 1)
    sells = sleeper["agent"]
    sells.on_invitation(lambda deal: Accept(deal.invitation))
    sells.on_turn(lambda deal: None if deal.agreed else Accept(deal.their_offer))

    async def main() -> None:
        server = uvicorn.Server(uvicorn.Config(sleeper["app"], log_level="warning", lifespan="off"))
        with socket.create_server(("127.0.0.1", 0)) as listens:
            url = f"http://127.0.0.1:{listens.getsockname()[1]}/wake"
            serving = asyncio.create_task(server.serve(sockets=[listens]))
            await sells.call("wakeup.set", {"url": url, "secret": secret})
            deal = await bought(load("Haggle on a ladder")["agent"])
            async with httpx.AsyncClient() as anyone:
                assert (await anyone.post(url, content=b"{}")).status_code == 401
                assert (await anyone.get(url)).status_code == 405
            server.should_exit = True
            await serving
        await sells.close()
        assert deal.agreed and deal.agreed.raw["price"] == 60

    run(main())


def test_execution(broker: Broker, load: Load) -> None:
    async def main() -> None:
        sells = load("Commit, deliver, pay", SELLER, 1)["agent"]
        sells.on_invitation(lambda deal: Accept(deal.invitation))
        async with sells:
            buys, errors = load("Commit, deliver, pay")["agent"], []
            buys.on_error(lambda deal, error: errors.append(error))
            deal = await bought(buys)
        assert deal.outcome == "completed" and [o.status for o in deal.obligations] == ["fulfilled"]
        assert [e["performative"] for e in deal.entries].count("COMMIT") == 1 and not errors

    run(main())


def test_dispute(broker: Broker, load: Load) -> None:
    deadline = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat(timespec="seconds").replace("+00:00", "Z")
    owed = {"party": SELLER, "action": "deliver cups", "deadline": deadline}

    async def main() -> None:
        buys, sells = load("Dispute")["agent"], load("Dispute", SELLER)["agent"]
        arbiter: Agent[Any] = Agent(url=broker.url, token=ARBITER)
        await arbiter.call("session.list", {})
        session = await buys.open(SELLER, "cups", Cups(price=Decimal(60)), policy={"arbiter": ARBITER})
        await sells.say(await sells.deal(session), Accept("invitation"))
        deal = await buys.reduce(session)
        deal = await sells.say(await sells.deal(session), Accept(deal.my_offer))
        deal = await buys.say(await buys.deal(session), Commit(deal.agreed, obligations=[owed]))
        await sells.say(await sells.deal(session), Accept(deal.commitment(deal.agreed)))
        broker.advance("2h")
        statuses = []
        for who in (buys, sells, buys):
            deal = await who.reduce(session)
            statuses += [d.status for d in deal.disputes]
        assert statuses == ["open", "open", "agreed"]
        for agent in (buys, sells, arbiter):
            await agent.close()

    run(main())


def test_trace(spans: Spans, load: Load) -> None:
    agent = load("Join a trace")["agent"]
    trace, span = (int(part, 16) for part in ONE.split("-")[1:3])

    async def main() -> None:
        with use_span(NonRecordingSpan(SpanContext(trace, span, False, TraceFlags(TraceFlags.SAMPLED)))):
            await agent.open(SELLER, "cups")
        await agent.call("session.list", {})
        await agent.close()

    run(main())
    assert spans.has(ONE, "PROPOSE") and "session.list" not in spans.joined(ONE)


def test_versions(load: Load) -> None:
    assert load("Change versions")["agent"].schema == "acme-cups-v2"


def test_kit(load: Load, broker: Broker, counterparty: Callable[[str], Counterparty]) -> None:
    run(load("Test with a real broker")["test_day"](broker, counterparty))


def test_all_snippets_run() -> None:
    sections = {part.partition("\n")[0]: len(re.findall("```python", part)) for part in PAGE.split("\n## ")[1:]}
    assert {f"{title} {n}" for title, count in sections.items() for n in range(count)} == RUN
