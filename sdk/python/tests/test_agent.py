"""Conversations of agents with each other, through a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from parley_asp import (
    Accept,
    Agent,
    Amend,
    Close,
    Commit,
    Counter,
    Deal,
    Decision,
    Delegate,
    Escalate,
    Inform,
    NoAnswer,
    ParleyError,
    Propose,
    Refusal,
    Reject,
    TermsError,
    Wait,
    Withdraw,
    sync,
)
from parley_asp._moves import checked
from parley_asp.testing import Broker, Human
from parley_asp.tools import NegotiationTools

BUYER, SELLER, COMPLIANCE = "agent://acme.com/buyer", "agent://widgets.co/seller", "agent://acme.com/compliance"

GONE = "http://127.0.0.1:1"


class Cups(BaseModel):
    price: Decimal
    currency: str = "EUR"


class Day(BaseModel):
    on: date


def run(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 60))


def seller(broker: Broker, least: int = 80, **options: Any) -> Agent[Cups]:
    """Sells for at least so much: asks for 120 first, and comes down by 15."""
    agent = Agent(**{"url": broker.url, "token": SELLER, "terms": Cups, **options})

    @agent.on_invitation
    async def invited(deal: Deal[Cups]) -> Decision:
        assert deal.invitation is not None
        return Accept(deal.invitation)

    @agent.on_turn
    async def decide(deal: Deal[Cups]) -> Decision:
        if deal.agreed:
            return None
        if deal.their_offer.terms.price >= least:
            return Accept(deal.their_offer)
        return Counter(deal.their_offer, Cups(price=max(Decimal(least), 120 - 15 * Decimal(deal.round))))

    return agent


async def transcript(agent: Agent[Any], session: str) -> list[tuple[str, str]]:
    page = await agent.call("session.messages", {"sessionId": session})
    return [(e["sender"]["agentId"], e["performative"]) for e in page["messages"]]


def test_agreement(broker: Broker) -> None:
    buyer = Agent(url=broker.url, token=BUYER, terms=Cups)

    @buyer.on_turn
    async def decide(deal: Deal[Cups]) -> Decision:
        offer = deal.their_offer
        if deal.agreed:
            return Close.completed()
        if offer.terms.price > 100:
            return Counter(offer, Cups(price=deal.step(60, 100)))
        return Accept(offer)

    async def main() -> None:
        async with seller(broker), buyer:
            deal = await buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60)))
            assert deal.over and deal.agreed and deal.agreed.terms.price == 80 and deal.agreed.terms.currency == "EUR"
            again = await buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60)))
            assert again.id == deal.id and len(await transcript(buyer, deal.id)) == len(deal.entries)

    run(main())


def test_approval_and_check(broker: Broker, human: Callable[[str], Human]) -> None:
    """The example of the documentation: a colleague checks the offer, and a human approves it, once each."""
    buyer = Agent(url=broker.url, token=BUYER, terms=Cups)
    colleague: Agent[Cups] = Agent(url=broker.url, token=COMPLIANCE, terms=Cups)

    @buyer.on_turn
    async def decide(deal: Deal[Cups]) -> Decision:
        offer = deal.their_offer
        if deal.agreed:
            return Close.completed()
        if offer.terms.price > 110:
            return Counter(offer, Cups(price=deal.step(60, 100)))
        if not (check := deal.delegation(COMPLIANCE, offer)):
            return Delegate(check.target, about=offer)
        if not check.result:
            return Wait(check)
        if offer.terms.price > 90 and not (approval := deal.approval(offer)):
            return Reject(offer, "above 90") if approval.decision else Escalate(offer, why="above 90")
        return Accept(offer)

    @colleague.on_check
    async def check(deal: Deal[Cups]) -> Decision:
        assert deal.check is not None
        if deal.check.status == "offered":
            return Accept(deal.check)
        return Inform.result(deal.check, assessment="fine")

    async def main() -> None:
        async with seller(broker, least=95), buyer, colleague, human("human://acme.com/alice") as alice:
            asked = asyncio.create_task(buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60))))
            await alice.decides("approved")
            deal = await asked
            assert deal.agreed and deal.agreed.terms.price == 105
            acts = [act for _, act in await transcript(buyer, deal.id)]
            assert [acts.count(a) for a in ("DELEGATE", "ESCALATE", "ACCEPT", "CLOSE")] == [1, 1, 3, 1], acts

    run(main())


def test_check_of_an_offer_that_was_replaced(broker: Broker) -> None:
    """The answer about one offer is none about the next: what was delegated about the first is taken back."""
    buyer = Agent(url=broker.url, token=BUYER, terms=Cups)
    colleague: Agent[Cups] = Agent(url=broker.url, token=COMPLIANCE, terms=Cups)
    sells = seller(broker)

    @buyer.on_turn
    async def decide(deal: Deal[Cups]) -> Decision:
        if deal.agreed:
            return Close.completed()
        offer = deal.their_offer
        if not (check := deal.delegation(COMPLIANCE, offer)):
            return Delegate(COMPLIANCE, about=offer)
        return Accept(offer) if check.result else Wait(check)

    @colleague.on_check
    async def check(deal: Deal[Cups]) -> Decision:
        assert deal.check is not None
        if deal.check.status == "offered":
            return Accept(deal.check)
        if next(o for o in deal.offers if o.id == deal.check.about).terms.price == 80:
            return None  # it takes its time
        return Inform.result(deal.check, assessment="fine")

    @sells.on_turn
    async def sell(deal: Deal[Cups]) -> Decision:
        return None if deal.agreed or deal.my_offer else Counter(deal.their_offer, Cups(price=Decimal(80)))

    async def main() -> None:
        async with sells, buyer, colleague:
            asked = asyncio.create_task(buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60))))
            while not (deals := [d async for d in deals_of(sells) if d.entries[-1]["performative"] == "ACCEPT" and d.my_offer]):
                await sells.call("turn.wait", {"seconds": 1})
            await sells.say(deals[0], Propose(Cups(price=Decimal(85))))
            deal = await asked
            assert deal.agreed and deal.agreed.terms.price == 85 and deal.delegation(COMPLIANCE, deal.offers[-2]).result is None
            acts = [act for _, act in await transcript(buyer, deal.id)]
            assert [a for a in acts if a in ("DELEGATE", "WITHDRAW", "INFORM")] == ["DELEGATE", "WITHDRAW", "DELEGATE", "INFORM"], acts

    run(main())


async def deals_of(agent: Agent[Any]) -> Any:
    for row in (await agent.call("session.list", {}))["sessions"]:
        yield await agent.deal(row["sessionId"])


def test_modification(broker: Broker, human: Callable[[str], Human]) -> None:
    """An offer that a human allows only otherwise is not granted."""
    buyer = Agent(url=broker.url, token=BUYER, terms=Cups)

    @buyer.on_turn
    async def decide(deal: Deal[Cups]) -> Decision:
        if deal.agreed:
            return Close.completed()
        offer = deal.their_offer
        if offer.terms.price > 90 and not (approval := deal.approval(offer)):
            return Counter(offer, Cups(price=Decimal(85))) if approval.decision else Escalate(offer, why="above 90")
        return Accept(offer)

    async def main() -> None:
        async with seller(broker), buyer, human("human://acme.com/alice") as alice:
            asked = asyncio.create_task(buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60))))
            await alice.decides("modified", authority={"bounds": [{"termPath": "terms.price", "max": 85}]})
            deal = await asked
            assert deal.agreed and deal.agreed.terms.price == 85

    run(main())


def test_three_workers_say_nothing_twice(broker: Broker) -> None:
    """Workers of one agent decide the same, and what they decide is said once."""

    def worker() -> Agent[Cups]:
        buyer = Agent(url=broker.url, token=BUYER, terms=Cups)

        @buyer.on_turn
        async def decide(deal: Deal[Cups]) -> Decision:
            if deal.agreed:
                return Close.completed()
            if deal.their_offer.terms.price > 85:
                return Counter(deal.their_offer, Cups(price=deal.step(60, 100)))
            return Accept(deal.their_offer)

        return buyer

    async def main() -> None:
        sellers, workers = [seller(broker) for _ in range(3)], [worker() for _ in range(3)]
        for a in (*sellers, *workers):
            await a.__aenter__()
        deals = await asyncio.gather(*(w.negotiate(SELLER, "cups", Cups(price=Decimal(60)), key=str(n)) for w in workers for n in range(4)))
        assert len({d.id for d in deals}) == 4
        for d in deals:
            said = await transcript(workers[0], d.id)
            assert said == [
                (BUYER, "PROPOSE"), (SELLER, "ACCEPT"), (BUYER, "PROPOSE"), (SELLER, "COUNTER"), (BUYER, "COUNTER"), (SELLER, "COUNTER"),
                (BUYER, "COUNTER"), (SELLER, "ACCEPT"), (BUYER, "CLOSE"),
            ] or d.agreed, said  # fmt: skip
            assert len(said) == 9, said
        for a in (*sellers, *workers):
            await a.close()

    run(main())


def test_errors_rest_until_there_is_news(broker: Broker) -> None:
    """What a handler raises, and what is not allowed, goes to on_error once; the next entry wakes the session."""
    buyer = Agent(url=broker.url, token=BUYER, terms=Cups)
    errors: list[str] = []
    woken = asyncio.Event()

    @buyer.on_turn
    async def decide(deal: Deal[Cups]) -> Decision:
        match len(errors):
            case 0:
                raise ValueError("poison")
            case 1:
                return Accept("nothing")
            case 2:
                return Counter(deal.their_offer, {"price": Decimal("0.1234567890123456789")})
            case _:
                return Close()

    @buyer.on_error
    async def failed(deal: Deal[Cups] | None, error: BaseException) -> None:
        errors.append(f"{type(error).__name__}: {error}")
        woken.set()

    async def main() -> None:
        other: Agent[Any] = Agent(url=broker.url, token=SELLER, terms=Cups)
        async with buyer:
            asked = asyncio.create_task(buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60))))
            while not (listed := await other.call("session.list", {"awaiting": "me"}))["sessions"]:
                await other.call("turn.wait", {"seconds": 1})
            deal = await other.deal(listed["sessions"][0]["sessionId"])
            await other.say(deal, Accept("invitation"))
            for n in range(4):
                while not (deal := await other.deal(deal.id)).offers and not deal.over:
                    await other.call("turn.wait", {"seconds": 1})
                woken.clear()
                await other.say(deal, Propose({"price": 70 + n}, subject="cups"))
                if n < 3:
                    await woken.wait()
            final = await asked
            assert final.over and len(errors) == 3, errors
            assert (
                "poison" in errors[0]
                and errors[1].startswith("NotAllowed: wrong_state: ACCEPT of nothing")
                and errors[2].startswith("TermsError")
            ), errors
        await other.close()

    run(main())


def test_invitation_that_is_withdrawn(broker: Broker) -> None:
    slow: asyncio.Event
    refusals: list[str] = []

    async def main() -> None:
        nonlocal slow
        slow = asyncio.Event()
        buyer: Agent[Any] = Agent(url=broker.url, token=BUYER)
        errors: list[BaseException] = []
        agent: Agent[Cups] = Agent(url=broker.url, token=SELLER, terms=Cups)

        @agent.on_invitation
        async def invited(deal: Deal[Cups]) -> Decision:
            if deal.purpose == "withdrawn":
                await slow.wait()
            return Accept("invitation")

        @agent.on_turn
        async def decide(deal: Deal[Cups]) -> Decision:
            await slow.wait()
            return Accept(deal.their_offer)

        @agent.on_error
        def failed(deal: Deal[Cups] | None, error: BaseException) -> None:
            errors.append(error)

        @agent.on_refused
        def refused(deal: Deal[Cups], decision: Any, refusal: Refusal) -> None:
            refusals.append(refusal.code)

        async with agent, buyer:
            deal = await buyer.negotiate(SELLER, "withdrawn", timeout=0.5)
            await buyer.say(deal, Withdraw("invitation"))
            slow.set()
            while not (deal := await buyer.deal(deal.id)).over:
                await buyer.call("turn.wait", {"seconds": 1})
            assert [a for _, a in await transcript(buyer, deal.id)] == ["PROPOSE", "WITHDRAW"]
            again = await buyer.negotiate(SELLER, "lives", timeout=1)
            assert again.state == "INTRODUCED"  # the agent goes on
            assert not errors and not refusals

    run(main())


def test_offer_that_expires(broker: Broker) -> None:
    """An answer that is too late is decided again, on what there is then; the next offer is answered as any other."""
    slept: list[str] = []

    async def main() -> None:
        late = asyncio.Event()
        buyer: Agent[Cups] = Agent(url=broker.url, token=BUYER, terms=Cups)
        sells: Agent[Any] = Agent(url=broker.url, token=SELLER)

        @buyer.on_turn
        async def decide(deal: Deal[Cups]) -> Decision:
            if deal.agreed:
                return Close.completed()
            if deal.their_offer.expires:
                broker.advance("2h")
                slept.append(deal.their_offer.id)
                late.set()
            return Accept(deal.their_offer)

        @buyer.on_refused
        def refused(deal: Deal[Cups], decision: Any, refusal: Refusal) -> None:
            slept.append(refusal.code)

        @sells.on_invitation
        def invited(deal: Deal[Any]) -> Decision:
            return Accept("invitation")

        @sells.on_turn
        def answer(deal: Deal[Any]) -> Decision:
            if deal.agreed or not deal.their_offer:
                return None
            until = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            return Counter(deal.their_offer, {"price": 90, "currency": "EUR"}, also={"validUntil": until})

        async with sells, buyer:
            asked = asyncio.create_task(buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60))))
            await late.wait()
            (row,) = (await sells.call("session.list", {}))["sessions"]
            await sells.say(await sells.deal(row["sessionId"]), Propose({"price": 70, "currency": "EUR"}, subject="cups"))
            deal = await asked
            acts = [a for _, a in await transcript(buyer, deal.id)]
            assert deal.agreed and deal.agreed.terms.price == 70 and acts.count("ACCEPT") == 2 and len(slept) == 1, (slept, acts)

    run(main())


def test_an_offer_that_lapsed_is_its_authors_turn(broker: Broker) -> None:
    buyer: Agent[Any] = Agent(url=broker.url, token=BUYER)
    other: Agent[Any] = Agent(url=broker.url, token=SELLER)
    asked: list[str] = []

    @buyer.on_turn
    def decide(deal: Deal[Any]) -> Decision:
        assert deal.lapsed and not deal.their_offer
        asked.append(deal.offers[-1].status)
        return Propose({"price": 70}) if len(asked) == 1 else Close()

    async def main() -> None:
        until = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        session = await buyer.open(SELLER, "cups", Propose({"price": 60}, also={"validUntil": until}))
        await other.say(await other.deal(session), Accept("invitation"))
        assert (await buyer.reduce(session)).my_offer and not asked
        broker.advance("2h")
        deal = await buyer.reduce(session)
        assert deal.my_offer and deal.my_offer.raw["price"] == 70 and asked == ["expired"]
        deal = await other.deal(session)
        await other.say(deal, Reject(deal.their_offer))
        assert (await buyer.reduce(session)).over and asked == ["expired", "rejected"]
        await buyer.close()
        await other.close()

    run(main())


def test_an_end_that_is_said_outside_a_handler(broker: Broker) -> None:
    async def main() -> None:
        buyer: Agent[Any] = Agent(url=broker.url, token=BUYER)
        other: Agent[Any] = Agent(url=broker.url, token=SELLER)
        async with buyer:
            asked = asyncio.create_task(buyer.negotiate(SELLER, "cups", {"price": 60}))
            while not (rows := (await other.call("session.list", {}))["sessions"]):
                await other.call("turn.wait", {"seconds": 1})
            await buyer.say(await buyer.deal(rows[0]["sessionId"]), Withdraw("invitation"))
            assert (await asked).over
        await other.close()

    run(main())


def test_old_news_after_an_act(broker: Broker) -> None:
    """What is returned after an act has it, also while a handler works and older news come."""

    async def main() -> None:
        works, decided, come = asyncio.Event(), asyncio.Event(), asyncio.Event()
        buyer: Agent[Any] = Agent(url=broker.url, token=BUYER)
        other: Agent[Any] = Agent(url=broker.url, token=SELLER)

        @buyer.on_invitation
        async def decide(deal: Deal[Any]) -> Decision:
            works.set()
            await decided.wait()
            return None

        session = await other.open(BUYER, "cups")
        old = await buyer.call("session.snapshot", {"sessionId": session, "since": 0})
        transport = buyer._transport
        call, say = transport.call, transport.say

        async def calls(verb: str, request: dict[str, Any], trace: str | None = None) -> Any:
            if verb != "turn.wait" or request["seconds"] == 0 or come.is_set():
                return await call(verb, request)
            await come.wait()
            return {"cursor": request["since"], "snapshot": old}

        async def says(*act: Any) -> Any:
            answer = await say(*act)
            come.set()
            for _ in range(3):
                await asyncio.sleep(0)  # in which the news come
            return answer

        transport.call, transport.say = calls, says  # type: ignore[method-assign,assignment]
        async with buyer:
            await works.wait()
            assert (await buyer.say(await buyer.deal(session), Reject("invitation"))).over
            decided.set()
        await other.close()

    run(main())


@pytest.mark.parametrize("agrees", [True, False])
def test_an_end_by_another_worker(agrees: bool, broker: Broker) -> None:
    """A worker that rests learns of it, though what its own agent says is no news."""

    async def main() -> None:
        rests = asyncio.Event()
        one, two = [Agent(url=broker.url, token=BUYER, terms=Cups) for _ in range(2)]

        @one.on_turn
        def decide(deal: Deal[Cups]) -> Decision:
            if agrees and not deal.agreed:
                return Accept(deal.their_offer)
            rests.set()
            return None

        async with seller(broker), one:
            asked = asyncio.create_task(one.negotiate(SELLER, "cups", Cups(price=Decimal(60))))
            await rests.wait()
            (row,) = (await two.call("session.list", {}))["sessions"]
            await two.say(await two.deal(row["sessionId"]), Close.completed() if agrees else Close())
            assert (await asked).over
        await two.close()

    run(main())


def test_floats_are_refused() -> None:
    class Bad(BaseModel):
        price: float

    with pytest.raises(TypeError, match="float"):
        Agent(url=GONE, token="x", terms=Bad)
    with pytest.raises(ParleyError, match="own key"):
        Agent(url="nats://127.0.0.1:1", token="x")
    assert Agent(url=GONE, token="x", terms=Bad, floats=True)


@pytest.mark.parametrize("url", [None, "", "foo", "127.0.0.1:28081", "localhost:8080", "ftp://a", "http://", "http://a:b", "tls://a:99999"])
def test_what_is_no_url(url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_URL", url or "")
    monkeypatch.setenv("PARLEY_TOKEN", "x")
    makes: list[Callable[[], Any]] = [Agent.from_env, sync.Agent.from_env] if url else []
    makes += [lambda: Agent(url=url, token="x"), lambda: NegotiationTools(url, "x")]
    for make in makes:
        with pytest.raises(ParleyError, match=r"set PARLEY_URL or url=.*http://127\.0\.0\.1:8080"):
            make()
    with pytest.raises(ParleyError) as refused:
        Agent(url="http//user:secret@broker", token="x")
    assert "secret" not in str(refused.value) and "broker" in str(refused.value)


def test_a_broker_that_is_away(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    """It is asked again; the log says once that it is away, and once that it is there again."""

    async def main() -> None:
        agent: Agent[Any] = Agent(url=broker.url, token=BUYER)
        tried = asyncio.Queue[str]()
        call = agent._transport.call

        async def calls(*asked: Any) -> Any:
            try:
                answer = await call(*asked)
            except NoAnswer:
                tried.put_nowait("no answer")
                raise
            tried.put_nowait("answered")
            return answer

        agent._transport.call = calls  # type: ignore[method-assign,assignment]
        broker.kill()
        async with agent:
            assert [await tried.get() for _ in range(3)] == ["no answer"] * 3
            await asyncio.to_thread(broker.start)
            while await tried.get() != "answered":
                pass

    run(main())
    said = [r.getMessage() for r in caplog.records if r.name == "parley_asp"]
    assert len(said) == 2 and said[1] == "the broker answers again", said
    assert "PARLEY_URL" in said[0] and f"GET {broker.url}/v1/asp: ConnectError" in said[0]


@pytest.mark.parametrize(
    ("terms", "path"),
    [
        ({"price": 0.1}, "terms.price is the float 0.1.*use Decimal"),
        ({"lots": [{"price": 1}, {"price": Decimal("NaN")}]}, r"terms.lots\[1\].price: "),
        ({"price": Decimal("0.1234567890123456789")}, "terms.price: .*send it as text"),
        ({"count": 2**53}, "terms.count: .*send it as text"),
        ({"cups": Day(on=date(2026, 1, 1))}, "terms.cups.on: .*date"),
        (["price", 60], "terms is a list"),
        ({"lots": {1: 2, "1": 3}}, "terms.lots has the name 1, which is no text"),
    ],
)
def test_terms_that_cannot_be_said(terms: Any, path: str) -> None:
    """Nothing is sent: there is no broker."""

    async def main() -> None:
        buyer: Agent[Any] = Agent(url=GONE, token=BUYER)
        async with buyer:
            for first in (terms, Propose(terms)):
                for ask in (buyer.negotiate, buyer.open):
                    with pytest.raises(TermsError, match=path):
                        await ask(SELLER, "cups", first)
                with pytest.raises(TermsError, match=path):
                    await buyer.tender([SELLER, COMPLIANCE], "cups", first)

    run(main())


def test_negotiation_whose_id_is_taken(broker: Broker) -> None:
    """Ids are no secret: whoever opens a session with one first has it, and the agent says so."""

    async def main() -> None:
        squatter: Agent[Any] = Agent(url=broker.url, token=COMPLIANCE, agent=BUYER)  # which only ids are made of
        partner: Agent[Any] = Agent(url=broker.url, token=SELLER, agent=BUYER)
        async with squatter, partner, Agent[Any](url=broker.url, token=BUYER) as buyer:
            await squatter.open(SELLER, "cups")
            await partner._invite(partner._session(SELLER, "plates", "asp/1", ""), BUYER, "plates", "asp/1", None)
            for subject in ("cups", "plates"):
                with pytest.raises(ParleyError, match="give it another key"):
                    await buyer.negotiate(SELLER, subject, {"price": 60})
            assert await buyer.open(SELLER, "cups", key="2")

    run(main())


def test_negotiate_without_a_broker() -> None:
    """It does not outlast its timeout."""

    async def main() -> None:
        async with Agent[Any](url=GONE, token=BUYER) as buyer:
            with pytest.raises(NoAnswer):
                await asyncio.wait_for(buyer.negotiate(SELLER, "cups", {"price": 60}, timeout=0.1), 30)

    run(main())


def test_floats_that_may_be_said() -> None:
    assert checked(Propose({"price": 0.1}), floats=True)
    with pytest.raises(TermsError, match=r"terms\.price: "):
        checked(Propose({"price": float("inf")}), floats=True)
    owes = {"party": BUYER, "action": "pays", "quantity": 2.5}
    assert checked(Commit(obligations=[owes]), floats=False) and checked(Amend("c1", [owes]), floats=False)


def test_terms_of_handlers(broker: Broker) -> None:
    """What a handler offers is checked alike, and on_error is called."""

    async def main() -> None:
        failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        buyer: Agent[Any] = Agent(url=broker.url, token=BUYER)

        @buyer.on_turn
        def decide(deal: Deal[Any]) -> Decision:
            return Counter(deal.their_offer, {"price": 0.1})

        @buyer.on_error
        def hear(deal: Deal[Any] | None, error: BaseException) -> None:
            failed.set_result(error)

        async with seller(broker), buyer:
            asked = asyncio.create_task(buyer.negotiate(SELLER, "cups", {"price": 60}))
            error = await failed
            assert isinstance(error, TermsError) and "terms.price is the float 0.1" in str(error)
            asked.cancel()

    run(main())
