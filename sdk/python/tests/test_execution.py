"""What was agreed is carried out: delivered in parts, rejected, breached, disputed, decided and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from test_agent import BUYER, SELLER, run

from parley_asp import (
    Accept,
    Act,
    Agent,
    Amend,
    Close,
    Commit,
    Compensate,
    Deal,
    Decision,
    Deliver,
    Delivery,
    Deny,
    Dispute,
    Evidence,
    Propose,
    Reject,
    Report,
    Uphold,
    Waive,
    digest_of,
)
from parley_asp.testing import Broker

ARBITER = "agent://court.example/arbiter"


def delivered(deal: Deal[Any]) -> Delivery:
    delivery = deal.obligations[0].delivery
    assert delivery
    return delivery


def test_carried_out(broker: Broker) -> None:
    deadline = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    owed = {"party": SELLER, "action": "deliver cups", "quantity": 10, "unit": "box", "deadline": deadline}
    sells: Agent[Any] = Agent(url=broker.url, token=SELLER)
    buys: Agent[Any] = Agent(url=broker.url, token=BUYER)
    arbiter: Agent[Any] = Agent(url=broker.url, token=ARBITER)

    @sells.on_invitation
    def invited(deal: Deal[Any]) -> Decision:
        assert deal.invitation is not None
        return Accept(deal.invitation)

    @sells.on_turn
    def sell(deal: Deal[Any]) -> Decision:
        asked = next((i for i in deal.open if i.kind == "commitment" and deal.me in i.of), None)
        if deal.their_offer:
            return Accept(deal.their_offer)
        return Accept(asked) if asked else None

    executing = asyncio.Event()

    @buys.on_turn
    def buy(deal: Deal[Any]) -> Decision:
        if deal.state == "EXECUTING":
            assert deal.agreed
            made = deal.commitment(deal.agreed)
            assert made.mine and not made.open and made.raw["terms"]["obligations"] == [owed]
            executing.set()
        # Asked again before the other side has accepted, it says the same, which commits once.
        return Commit(deal.agreed, obligations=[owed]) if deal.agreed else None

    async def says(who: Agent[Any], session: str, make: Callable[[Deal[Any]], Act]) -> Deal[Any]:
        await who.say(await who.deal(session), make(await who.deal(session)))
        return await who.deal(session)

    async def main() -> None:
        await arbiter.call("session.list", {})
        async with sells, buys:
            session = await buys.open(SELLER, "cups", Propose({"price": 60}), policy={"arbiter": ARBITER})
            await asyncio.wait_for(executing.wait(), 30)
            evidence = Evidence("invoice", digest_of(b"invoice"))
            await says(sells, session, lambda d: Report(d.obligations[0], {"packed": 4}))
            now = await says(sells, session, lambda d: Deliver(d.obligations[0], 5, [evidence]))
            assert (now.obligations[0].status, delivered(now).quantity) == ("asserted", 5)
            assert [e["digest"] for e in delivered(now).evidence] == [digest_of(b"invoice")]
            now = await says(buys, session, lambda d: Accept(delivered(d), quantity=4))
            assert (now.obligations[0].status, now.obligations[0].accepted, now.obligations[0].remains) == ("partial", 4, 6)
            await says(sells, session, lambda d: Deliver(d.obligations[0]))
            now = await says(buys, session, lambda d: Reject(delivered(d), "they are broken", code="mismatch"))
            assert (now.obligations[0].delivery, now.obligations[0].remains) == (None, 6)
            now = await says(sells, session, lambda d: Amend(d.obligations[0].raw["commitmentId"], [{**owed, "quantity": 5}]))
            asked = next(i for i in (await buys.deal(session)).open if i.id.startswith("amendment"))
            now = await says(buys, session, lambda d: Accept(asked))
            broker.advance("2h")
            now = await buys.deal(session)
            late = now.obligations[0]
            assert late.breaches == 1
            now = await says(buys, session, lambda d: Dispute(d.head, "other", "boxes are missing", severity=3))
            assert [(d.status, d.ground, d.severity) for d in now.disputes] == [("open", "other", 3)]
            await says(sells, session, lambda d: Deny(d.disputes[0], "they were there"))
            now = await says(sells, session, lambda d: Compensate(d.disputes[0], "half of the price"))
            assert [(r.position, r.remedy) for r in now.disputes[0].replies] == [("deny", None), ("offer", "half of the price")]
            now = await says(arbiter, session, lambda d: Uphold(d.disputes[0], "nothing came in time", {"refund": "6 boxes"}))
            assert now.disputes[0].status == "upheld"
            now = await says(buys, session, lambda d: Waive(d.obligations[0], "no longer needed"))
            now = await says(buys, session, lambda d: Close.completed())
            assert (now.state, now.outcome) == ("CLOSED", "completed")
            assert [e["performative"] for e in now.entries].count("COMMIT") == 1
        await arbiter.close()

    run(main())
