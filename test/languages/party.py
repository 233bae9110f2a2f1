"""One side of a negotiation in Python, over the SDK: ROLE is buyer, seller or colleague. A buyer prints its session and the price."""

import asyncio
import os
from decimal import Decimal

from pydantic import BaseModel

from parley_asp import Accept, Agent, Close, Commit, Counter, Deal, Decision, Delegate, Escalate, Inform, Propose, Wait

ROLE, MODE, BEST = os.environ["ROLE"], os.environ["MODE"], Decimal(os.environ["BEST"])
PEER, COLLEAGUE = os.environ["PEER"], os.environ["COLLEAGUE"]
ASSESSMENT = {"assessment": {"reasoning": "it fits", "suggestedRoles": {"ownUser": "patient", "otherUser": "agent"}}}
ALSO = ASSESSMENT if MODE == "bilateral/1" else {}


class Cups(BaseModel):
    price: Decimal
    currency: str = "EUR"


party = Agent.from_env(terms=Cups)


@party.on_invitation
def invited(deal: Deal[Cups]) -> Decision:
    return Accept(deal.invitation)


@party.on_check
def check(deal: Deal[Cups]) -> Decision:
    return Accept(deal.check) if deal.check.status == "offered" else Inform.result(deal.check, assessment="fine")


@party.on_turn
def decide(deal: Deal[Cups]) -> Decision:
    offer, mine, sells = deal.their_offer, deal.my_offer, ROLE == "seller"
    if deal.agreed:
        return Close.completed() if not sells and deal.allows("CLOSE") else None
    if MODE == "convergent/1" and deal.allows("COMMIT"):
        return Commit(mine or offer)
    if mine:  # of convergent/1, whose authors accept their own offers, too
        accepted = any(e["performative"] == "ACCEPT" and e["content"]["body"]["referenceId"] == mine.id for e in deal.news)
        return Accept(mine) if accepted and deal.allows("ACCEPT", mine) else None
    if not offer:
        return None
    price = offer.terms.price
    if price < BEST if sells else price > BEST:
        asked = max(BEST, 120 - Decimal(20) * deal.round) if sells else min(Decimal(75), 60 + Decimal(5) * deal.round)
        return Counter(offer, Cups(price=asked), also=ALSO)
    if not sells and MODE == "asp/1":
        if not (asks := deal.delegation(COLLEAGUE)):
            return Delegate(COLLEAGUE, about=offer)
        if not asks.result:
            return Wait(asks)
        if not deal.approval(offer):
            return Escalate(offer, why="everything is above my limit")
    return Accept(offer, also=ALSO)


async def main() -> None:
    if ROLE != "buyer":
        await party.run()
    async with party:
        first = Propose(Cups(price=Decimal(60)), subject="cups", also=ALSO)
        deal = await party.negotiate(PEER, "cups", first, mode=MODE)
        print(deal.id, deal.agreed.terms.price if deal.agreed else deal.outcome, flush=True)


asyncio.run(main())
