"""Kills, clocks, keys and servers that are not there: nothing is lost, and nothing is said twice."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter as Count
from collections.abc import Callable
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from test_agent import BUYER, COMPLIANCE, SELLER, Cups, run, seller, transcript

from parley_asp import (
    Accept,
    Agent,
    Clarify,
    Close,
    Commit,
    Counter,
    Deal,
    Decision,
    Delegate,
    Escalate,
    Inform,
    NoAnswer,
    Observe,
    ParleyError,
    Propose,
    Query,
    Refusal,
    Reject,
    Withdraw,
)
from parley_asp._json import plain
from parley_asp._transport import patiently
from parley_asp.errors import Duplicate, Unauthorized
from parley_asp.testing import Broker, Human
from parley_asp.verify import verify_transcript
from parley_asp.wakeup import lambda_handler

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
    """A broker with logins, and what registers an agent or a human there: its seeds, and a token."""
    data = tmp_path / "keyed"
    b = Broker(data, dev=False)

    def parley(*args: str) -> str:
        return subprocess.run(
            [Broker.program(), *args, "--data", str(data), "--url", b.nats_url], capture_output=True, text=True, check=True
        ).stdout

    def add(uri: str) -> dict[str, str]:
        out = tmp_path / (uri.rpartition("/")[2] + ".nk")
        parley(*(["human", "add", "--may-decide"] if uri.startswith("human://") else ["agent", "add"]), uri, "--key-out", str(out))
        token = next(word for word in parley("token", "add", uri).split() if word.startswith("parley_"))
        return {"agent": uri, "seed": out.read_text().strip(), "login": out.with_suffix(".login.nk").read_text().strip(), "token": token}

    yield b, add
    b.close()


def buying(decided: Count[str] | None = None, **options: Any) -> Agent[Cups]:
    """Buys for at most 85, and counts what it decides by the head that it decides on."""
    buyer = Agent(terms=Cups, **options)

    @buyer.on_turn
    async def decide(deal: Deal[Cups]) -> Decision:
        if decided is not None:
            decided[deal.head] += 1
        if deal.agreed:
            return Close.completed()
        if deal.their_offer.terms.price > 85:
            return Counter(deal.their_offer, Cups(price=deal.step(60, 100)))
        return Accept(deal.their_offer)

    return buyer


NINE = ["PROPOSE", "ACCEPT", "PROPOSE", *["COUNTER"] * 4, "ACCEPT", "CLOSE"]


async def buys_nine(buyer: Agent[Cups], **options: Any) -> Deal[Cups]:
    """Negotiate, and see that each act was said, and once."""
    deal = await buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60)), **options)
    assert deal.agreed and deal.agreed.terms.price == 80
    assert [act for _, act in await transcript(buyer, deal.id)] == NINE
    return deal


def test_each_answer_dropped(broker: Broker) -> None:
    """Both sides lose the answer to each act that they say, and decide each once."""
    decided: Count[str] = Count()

    async def main() -> None:
        async with seller(broker, url=broker.faults.url), buying(decided, url=broker.faults.url, token=BUYER) as buyer:
            broker.faults.drop_answers(len(NINE))
            await buys_nine(buyer)

    run(main())
    assert broker.faults.happened == ["drop_answers"] * 9 and set(decided.values()) == {1} and len(decided) == 3


def test_each_act_dropped(broker: Broker, human: Callable[[str], Human]) -> None:
    """What a program says itself survives the loss of its answer too: of all thirteen acts."""

    async def main() -> None:
        one: Agent[Any] = Agent(url=broker.faults.url, token=BUYER)
        two: Agent[Any] = Agent(url=broker.faults.url, token=SELLER)
        three: Agent[Any] = Agent(url=broker.faults.url, token=COMPLIANCE)
        broker.faults.drop_answers(100)
        session = await one.open(SELLER, "cups")
        await two.say(await two.deal(session), Accept("invitation"))
        deal = await one.say(await one.deal(session), Propose({"price": 60}))
        (offer,) = deal.offers
        deal = await two.say(await two.deal(session), Clarify(offer.id, [("terms.price", "with tax?")]))
        (question,) = deal.open[-1:]
        await one.say(await one.deal(session), Inform.answer(question.id, "without"))
        await two.say(await two.deal(session), Counter(offer.id, {"price": 70}))
        await one.say(await one.deal(session), Query("colour"))
        await one.say(await one.deal(session), Observe("weather", "sunny"))
        deal = await one.deal(session)
        assert deal.their_offer
        await one.say(deal, Delegate(COMPLIANCE, about=deal.their_offer))
        check = (await three.deal(session)).check
        assert check
        await three.say(await three.deal(session), Inform.result(check, assessment="fine"))
        await one.say(await one.deal(session), Escalate(deal.their_offer, why="above 65"))
        async with human("human://acme.com/alice") as alice:
            await alice.decides("approved")
        deal = await one.deal(session)
        assert deal.their_offer
        await one.say(deal, Reject(deal.their_offer, "too dear"))
        deal = await one.say(await one.deal(session), Propose({"price": 65}))
        assert deal.my_offer
        deal = await one.say(deal, Withdraw(deal.my_offer))
        await one.say(deal, Commit(obligations=[{"party": BUYER, "action": "visit"}]))
        await two.say(await two.deal(session), Close())
        said = Count(act for _, act in await transcript(one, session))
        assert len(said) == 13 and said == Count({**dict.fromkeys(said, 1), "PROPOSE": 3, "INFORM": 3})
        assert len(broker.faults.happened) == sum(said.values()) - 1  # the human's is not said through the proxy
        for agent in (one, two, three):
            await agent.close()

    run(main())


def test_news_come_again(broker: Broker) -> None:
    """Each news is delivered twice, to both sides."""

    async def main() -> None:
        async with seller(broker, url=broker.faults.url), buying(url=broker.faults.url, token=BUYER) as buyer:
            broker.faults.redeliver(100)
            for n in range(3):
                await buys_nine(buyer, key=str(n))

    run(main())
    assert broker.faults.happened.count("redeliver") >= 6


def test_calls_come_again(broker: Broker) -> None:
    """A seller that sleeps is called twice for each entry, one call after the other."""
    secret = "whsec_" + base64.b64encode(b"k" * 24).decode()
    answer = lambda_handler(lambda: seller(broker, url=broker.faults.url), secret)
    calls: Count[str] = Count()

    class Sleeper(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            calls[self.headers["Webhook-Id"]] += 1
            self.send_response(answer({"headers": dict(self.headers), "body": body}, None)["statusCode"])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Sleeper)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    async def main() -> None:
        asleep: Agent[Any] = Agent(url=broker.url, token=SELLER)
        url = broker.faults.in_front_of(f"http://127.0.0.1:{server.server_port}/wake")
        await asleep.call("wakeup.set", {"url": url, "secret": secret})
        await asleep.close()
        broker.faults.redeliver(100)
        async with buying(url=broker.url, token=BUYER) as buyer:
            await buys_nine(buyer)

    try:
        run(main())
    finally:
        server.shutdown()
        server.server_close()
    assert max(calls.values()) >= 2 and "redeliver" in broker.faults.happened


def test_three_workers_under_all_faults(broker: Broker) -> None:
    """Three workers of each side lose answers, get news twice, and their broker dies; none of them fails."""
    failed: list[BaseException] = []

    async def main() -> None:
        workers = [buying(url=broker.faults.url, token=BUYER) for _ in range(3)]
        agents = [*workers, *(seller(broker, url=broker.faults.url) for _ in range(3))]
        for agent in agents:
            agent.on_error(lambda _, error: failed.append(error))
            await agent.__aenter__()
        broker.faults.drop_answers(30)
        broker.faults.redeliver(30)
        asked = [asyncio.create_task(buys_nine(w, key=str(n))) for w in workers for n in range(4)]
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.to_thread(broker.faults.kill)
        assert len({d.id for d in await asyncio.gather(*asked)}) == 4
        assert all(agent._loop and not agent._loop.done() for agent in agents)
        for agent in agents:
            await agent.close()

    run(main())
    assert not failed and set(broker.faults.happened) == {"drop_answers", "redeliver", "kill"}


def test_broker_that_comes_up_later(broker: Broker) -> None:
    """Agents that start before their broker wait for it."""
    broker.kill()

    async def main() -> None:
        async with seller(broker), buying(url=broker.url, token=BUYER) as buyer:
            asked = asyncio.create_task(buys_nine(buyer))
            await asyncio.to_thread(broker.start)
            await asked

    run(main())


def test_offer_that_repeats_another(broker: Broker) -> None:
    """Such an offer is refused as duplicate; that is told, and not taken for what was said before."""

    async def main() -> None:
        refused: asyncio.Future[Refusal] = asyncio.get_running_loop().create_future()
        buyer: Agent[Any] = Agent(url=broker.url, token=BUYER)
        buyer.on_turn(lambda deal: Propose({"price": 60}))
        buyer.on_refused(lambda deal, decision, refusal: refused.set_result(refusal))
        asks: Agent[Any] = Agent(url=broker.url, token=SELLER)
        asks.on_invitation(lambda deal: Accept("invitation"))
        asks.on_turn(lambda deal: Query("when") if len(deal.entries) == 3 else None)
        async with asks, buyer:
            deal = await buyer.negotiate(SELLER, "cups", {"price": 60}, timeout=1)
            assert isinstance(await refused, Duplicate) and len(await transcript(buyer, deal.id)) == 4

    run(main())


def test_own_keys(keys: Any) -> None:
    """One's own key signs over NATS and over HTTP, with a clock ten minutes off, and each answer is lost."""
    broker, add = keys
    buys, sells = add(BUYER), add(SELLER)

    async def main() -> None:
        over_nats = buying(url=broker.faults.nats_url, agent=BUYER, seed=buys["seed"], login=buys["login"])
        over_http = buying(url=broker.faults.url, agent=BUYER, seed=buys["seed"], token=buys["token"])
        async with seller(broker, url=broker.faults.nats_url, token="", agent=SELLER, seed=sells["seed"], login=sells["login"]) as s:
            for n, buyer in enumerate((over_nats, over_http)):
                buyer._transport._ahead = 600.0  # type: ignore[attr-defined]  # as if the clock were off
                broker.faults.drop_answers(9)
                broker.faults.redeliver(9)
                async with buyer:
                    deal = await buys_nine(buyer, key=str(n))
                    page = await s.call("session.messages", {"sessionId": deal.id})
                    record = b"\n".join(rfc8785.dumps(plain(e)) for e in page["messages"])
                    assert verify_transcript(record, broker.key, length=9, head=deal.head) == []
                    assert verify_transcript(record.replace(b'"price":60', b'"price":61'), broker.key) != []

    run(main())
    assert broker.faults.happened.count("drop_answers") >= 18 and "redeliver" in broker.faults.happened


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
        with pytest.raises(Unauthorized):  # and it does not go on
            await asyncio.wait_for(wrong.run(), 5)
        other = add(SELLER)
        for login in (buys["seed"], other["login"]):  # one that nobody knows, and another agent's
            unknown: Agent[Any] = Agent(url=broker.nats_url, agent=BUYER, seed=buys["seed"], login=login)
            with pytest.raises(Unauthorized):
                await asyncio.wait_for(unknown.call("session.list", {}), 5)
            await unknown.close()
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
