"""A handler of 90 seconds: longer than any call waits."""

from __future__ import annotations

import asyncio
from decimal import Decimal

from test_agent import BUYER, SELLER, Cups, seller, transcript

from parley_asp import Accept, Agent, Close, Deal, Decision
from parley_asp.testing import Broker

SECONDS = 90


def test_slow_handler(broker: Broker) -> None:
    """What it decides is said once, with two workers, and other sessions do not wait for it."""
    called: list[str] = []

    def worker() -> Agent[Cups]:
        agent = Agent(url=broker.url, token=BUYER, terms=Cups)

        @agent.on_turn
        async def decide(deal: Deal[Cups]) -> Decision:
            if deal.agreed:
                return Close.completed()
            called.append(deal.purpose)
            if deal.purpose == "slow":
                await asyncio.sleep(SECONDS)
            return Accept(deal.their_offer)

        return agent

    async def main() -> None:
        async with seller(broker, least=95) as sells, worker() as one, worker() as two:
            slow = [asyncio.create_task(w.negotiate(SELLER, "slow", Cups(price=Decimal(60)))) for w in (one, two)]
            quick = await one.negotiate(SELLER, "quick", Cups(price=Decimal(60)))
            assert quick.agreed and not any(task.done() for task in slow)
            deals = await asyncio.gather(*slow)
            acts = [act for _, act in await transcript(sells, deals[0].id)]
            assert (acts.count("ACCEPT"), acts.count("CLOSE"), called.count("slow")) == (2, 1, 2), (acts, called)

    asyncio.run(asyncio.wait_for(main(), SECONDS + 60))
