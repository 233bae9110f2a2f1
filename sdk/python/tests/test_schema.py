"""The author's model as a terms schema that the broker checks."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import BaseModel, Field
from test_agent import BUYER, SELLER, Cups, run, seller

from parley_asp import Accept, Agent, Close, Counter, Deal, Decision, Propose
from parley_asp.errors import Duplicate, SchemaInvalid
from parley_asp.testing import Broker


class Priced(BaseModel):
    price: Decimal = Field(gt=0)
    currency: str = "EUR"


def test_the_broker_checks_offers_by_the_model(broker: Broker) -> None:
    buyer = Agent(url=broker.url, token=BUYER, terms=Priced, schema="acme-cups-v1")

    @buyer.on_turn
    def decide(deal: Deal[Priced]) -> Decision:
        if deal.agreed:
            return Close.completed()
        offer = deal.their_offer
        return Counter(offer, Priced(price=deal.step(60, "100.5"))) if offer.terms.price > 85 else Accept(offer)

    async def main() -> None:
        async with seller(broker), buyer:
            deals = await buyer.tender([SELLER], "cups", Priced(price=Decimal("60.5")), key="1")
            deals.append(await buyer.negotiate(SELLER, "cups", Priced(price=Decimal("60.5")), key="2"))
            published = await buyer.call("schema.get", {"name": "acme-cups-v1"})
        price, text = published["schema"]["properties"]["price"]["anyOf"]
        assert (published["by"], price["type"], text["type"]) == (BUYER, "number", "string") and "pattern" in text
        for deal in deals:
            assert deal.schemas == ("acme-cups-v1",) and deal.agreed and deal.agreed.terms.price == Decimal("80.25")
            offers = [e["content"]["body"] for e in deal.entries if e["performative"] in ("PROPOSE", "COUNTER")][1:]
            assert offers[0]["terms"]["price"] == Decimal("60.5")
            mine = [e["content"]["body"] for e in deal.entries if e["performative"] == "COUNTER" and e["sender"]["agentId"] == BUYER]
            assert {body["schema"] for body in mine} == {"acme-cups-v1"}

    run(main())


def test_terms_that_do_not_fit_are_refused(broker: Broker) -> None:
    class Loose(BaseModel):
        price: str

    other: Agent[Loose] = Agent(url=broker.url, token=SELLER, terms=Loose, schema="acme-cups-v1")
    buyer = Agent(url=broker.url, token=BUYER, terms=Priced, schema="acme-cups-v1")

    async def main() -> None:
        session = await buyer.open(SELLER, "cups")
        deal = await other.say(await other.deal(session), Accept("invitation"))
        for wrong in ("dear", "-", " 5"):
            with pytest.raises(SchemaInvalid):
                await other.say(deal, Propose(Loose(price=wrong)))
        deal = await other.say(deal, Propose(Loose(price="12.50")))
        assert (await buyer.deal(session)).their_offer.terms.price == Decimal("12.50")
        await buyer.close()
        await other.close()

    run(main())


def test_a_name_is_of_one_schema(broker: Broker) -> None:
    first = Agent(url=broker.url, token=BUYER, terms=Priced, schema="cups")
    same = Agent(url=broker.url, token=SELLER, terms=Priced, schema="cups")
    other = Agent(url=broker.url, token=BUYER, terms=Cups, schema="cups")

    async def main() -> None:
        await first.open(SELLER, "cups")
        await same.open(BUYER, "cups")
        with pytest.raises(Duplicate, match=r"cups.* is registered already"):
            await other.open(SELLER, "cups", key="2")
        for agent in (first, same, other):
            await agent.close()

    run(main())
    with pytest.raises(TypeError):
        Agent(url=broker.url, token=BUYER, schema="cups")
