"""Handlers that take long, and a clock that moves meanwhile."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from decimal import Decimal

from test_agent import BUYER, SELLER, Cups, run, seller, transcript

from parley_asp import Accept, Agent, Close, Counter, Deal, Decision
from parley_asp.testing import Broker


def test_slow_handlers(broker: Broker) -> None:
    """Of two workers that decide for 90 seconds, what the second decides too late is not said: it decides again."""
    seen: dict[str, list[bool]] = {"one": [], "two": []}  # whether it was agreed, for each call
    works = {name: asyncio.Event() for name in seen}
    decided = {name: asyncio.Event() for name in seen}
    agreed = asyncio.Event()

    def worker(name: str) -> Agent[Cups]:
        agent = Agent(url=broker.url, token=BUYER, terms=Cups)

        @agent.on_turn
        async def decide(deal: Deal[Cups]) -> Decision:
            if deal.purpose == "quick":
                return Close.completed() if deal.agreed else Accept(deal.their_offer)
            seen[name].append(deal.agreed is not None)
            if deal.agreed:
                agreed.set()
                return Close.completed() if name == "two" else None
            works[name].set()
            await decided[name].wait()
            return Accept(deal.their_offer) if name == "one" else Counter(deal.their_offer, Cups(price=Decimal(61)))

        return agent

    async def main() -> None:
        async with seller(broker, least=95) as sells, worker("one"), worker("two") as two:
            slow = asyncio.create_task(two.negotiate(SELLER, "slow", Cups(price=Decimal(60))))
            await asyncio.gather(*(w.wait() for w in works.values()))
            broker.advance("90s")
            quick = await two.negotiate(SELLER, "quick", Cups(price=Decimal(60)))
            assert quick.agreed and not slow.done()  # other sessions do not wait
            decided["one"].set()
            await agreed.wait()
            decided["two"].set()
            deal = await slow
            said = [act for by, act in await transcript(sells, deal.id) if by == BUYER]
            assert said == ["PROPOSE", "PROPOSE", "ACCEPT", "CLOSE"], said
            assert seen["one"][0] is False and seen["two"] == [False, True], seen

    run(main())


def test_expiry_when_the_clock_moves(broker: Broker) -> None:
    """An offer that expires because the clock is moved is seen at once, on both sides."""
    lapsed = asyncio.Event()

    async def main() -> None:
        buyer = Agent(url=broker.url, token=BUYER, terms=Cups)
        sells = Agent(url=broker.url, token=SELLER, terms=Cups)
        offered = asyncio.Event()
        until = (datetime.fromisoformat(broker.advance("1s")[:19] + "+00:00") + timedelta(hours=1)).isoformat().replace("+00:00", "Z")

        @sells.on_invitation
        def invited(deal: Deal[Cups]) -> Decision:
            return Accept("invitation")

        @sells.on_turn
        def sell(deal: Deal[Cups]) -> Decision:
            if deal.lapsed:
                lapsed.set()
                return Close()
            return Counter(deal.their_offer, Cups(price=Decimal(90)), also={"validUntil": until}) if deal.their_offer else None

        @buyer.on_turn
        def buy(deal: Deal[Cups]) -> Decision:
            offered.set()
            return None

        async with sells, buyer:
            asked = asyncio.create_task(buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60))))
            await offered.wait()
            broker.advance("2h")
            await asyncio.wait_for(lapsed.wait(), 20)
            assert (await asked).over

    run(main())
