"""Agents negotiate in every mode, hosted and with keys of their own."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from test_agent import BUYER, SELLER, Cups, run, transcript
from test_faults import keys as keys  # a fixture

from parley_asp import Accept, Agent, Close, Commit, Counter, Deal, Decision, Propose
from parley_asp.agreement import verify_agreement
from parley_asp.testing import Broker

ASSESSED = {"assessment": {"reasoning": "it fits", "suggestedRoles": {"ownUser": "patient", "otherUser": "agent"}}}


def party(mode: str, best: int, **options: Any) -> Agent[Cups]:
    """Concedes by 20 a round, down or up to its best, and takes what is no worse."""
    agent = Agent(terms=Cups, **options)
    also = ASSESSED if mode == "bilateral/1" else {}

    @agent.on_invitation
    def invited(deal: Deal[Cups]) -> Decision:
        assert deal.invitation is not None
        return Accept(deal.invitation)

    @agent.on_turn
    def decide(deal: Deal[Cups]) -> Decision:
        offer, sells = deal.their_offer, deal.role == "invitee"
        if deal.agreed:
            return Close.completed() if not sells and deal.allows("CLOSE") else None
        if deal.allows("COMMIT") and mode == "convergent/1":
            return Commit(deal.my_offer or offer)
        if mine := deal.my_offer:  # of convergent/1, whose authors accept their own offers, too
            accepted = any(e["performative"] == "ACCEPT" and e["content"]["body"]["referenceId"] == mine.id for e in deal.news)
            return Accept(mine) if accepted and deal.allows("ACCEPT", mine) else None
        if not offer:
            return None
        price = offer.terms.price
        if deal.allows("ACCEPT", offer) and (price >= best if sells else price <= best):
            return Accept(offer, also=also)
        asked = max(best, 120 - 20 * deal.round) if sells else min(best, 60 + 20 * deal.round)
        return Counter(offer, Cups(price=Decimal(asked)), also=also)

    return agent


def first(mode: str) -> Propose:
    return Propose(Cups(price=Decimal(60)), subject="cups", also=ASSESSED if mode == "bilateral/1" else {})


@pytest.mark.parametrize("mode", ["asp/1", "bilateral/1", "convergent/1", "binding/1"])
def test_hosted(broker: Broker, mode: str) -> None:
    async def main() -> None:
        buyer = party(mode, 100, url=broker.url, token=BUYER)
        async with buyer, party(mode, 80, url=broker.url, token=SELLER) as seller:
            deal = await buyer.negotiate(SELLER, "cups", first(mode), mode=mode, timeout=20)
            assert deal.over and deal.agreed and deal.agreed.terms.price in (80, 100), (deal.state, await transcript(seller, deal.id))
            (listed,) = (await seller.call("agreement.list", {}))["agreements"]
            document = await seller.call("agreement.get", {"agreementId": listed["agreementId"]})
            assert verify_agreement(document, broker=broker.key, allow_unsigned=True).faults == []

    run(main())


def test_signed_agreement(keys: Any) -> None:
    """In binding/1 each party signs the agreement's hash itself: one over NATS, one over HTTP."""
    broker, add = keys
    buys, sells = add(BUYER), add(SELLER)

    async def main() -> None:
        over_nats = {"url": broker.nats_url, "agent": BUYER, "seed": buys["seed"], "login": buys["login"]}
        over_http = {"url": broker.url, "agent": SELLER, "seed": sells["seed"], "token": sells["token"]}
        buyer = party("binding/1", 100, **over_nats)
        async with buyer, party("binding/1", 80, **over_http) as seller:
            deal = await buyer.negotiate(SELLER, "cups", first("binding/1"), mode="binding/1", timeout=30)
            assert deal.over and deal.agreed, (deal.state, deal.view)
            (listed,) = (await seller.call("agreement.list", {}))["agreements"]
            document = await seller.call("agreement.get", {"agreementId": listed["agreementId"]})
            report = verify_agreement(document, broker=broker.key)
            assert not report.faults and report.proves == "signatures", report

    run(main())
