"""Wake-ups, the façade without asyncio, and the test kit itself."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from test_agent import BUYER, SELLER, Cups, run, seller, transcript

from parley_asp import Accept, Agent, Close, Counter, Deal, Decision, NotAllowed, Refusal, TenderError, Withdraw, sync
from parley_asp.testing import Broker, Counterparty
from parley_asp.wakeup import Forged, asgi, lambda_handler, verify

SECRET = "whsec_" + base64.b64encode(b"k" * 24).decode()


def signed(body: bytes, at: float, identity: str = "sha256:x") -> dict[str, str]:
    to_sign = f"{identity}.{int(at)}.".encode() + body
    signature = base64.b64encode(hmac.new(b"k" * 24, to_sign, hashlib.sha256).digest()).decode()
    return {"Webhook-Id": identity, "Webhook-Timestamp": str(int(at)), "Webhook-Signature": f"v1,AAAA v1,{signature}"}


def test_only_signed_calls_are_taken() -> None:
    body, now = b'{"sessionId":"s"}', time.time()
    assert verify(SECRET, signed(body, now), body) == {"sessionId": "s"}
    wrong = [
        (signed(body, now), body + b" "),
        (signed(body, now - 400), body),
        ({}, body),
        (signed(body, now, "y") | {"Webhook-Id": "z"}, body),
    ]
    for headers, given in wrong:
        with pytest.raises(Forged):
            verify(SECRET, headers, given)


def test_calls_decide(broker: Broker) -> None:
    """A seller that only wakes up for calls sells; a forged call is answered 401."""

    async def main() -> None:
        asleep = seller(broker)
        app = asgi(asleep, SECRET)

        async def post(body: bytes, headers: dict[str, str]) -> int:
            sent: list[dict[str, Any]] = []

            async def receive() -> dict[str, Any]:
                return {"type": "http.request", "body": body, "more_body": False}

            async def send(message: dict[str, Any]) -> None:
                sent.append(message)

            scope = {"type": "http", "headers": [(n.lower().encode(), v.encode()) for n, v in headers.items()]}
            await app(scope, receive, send)
            return int(sent[0]["status"])

        buyer = Agent(url=broker.url, token=BUYER, terms=Cups)

        @buyer.on_turn
        async def decide(deal: Deal[Cups]) -> Decision:
            return Close.completed() if deal.agreed else Counter(deal.their_offer, Cups(price=Decimal(90)))

        async with buyer:
            asked = asyncio.create_task(buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60))))
            called = 0
            while not asked.done():
                row = next(iter((await buyer.call("session.list", {}))["sessions"]), None)
                if row is not None and row["messages"] != called:
                    called = row["messages"]
                    body = json.dumps({"type": "session.news", "sessionId": row["sessionId"]}).encode()
                    assert await post(body, signed(body, time.time())) == 204
                    assert await post(body, signed(body + b" ", time.time())) == 401
                await buyer.call("turn.wait", {"seconds": 0.2})
            deal = await asked
            assert deal.agreed and deal.agreed.terms.price == 90
        await asleep.close()
        answer = lambda_handler(lambda: seller(broker), SECRET)
        text = json.dumps({"sessionId": deal.id})
        event = {"body": text, "headers": signed(text.encode(), time.time())}
        assert (await asyncio.to_thread(answer, event, None)) == {"statusCode": 204}
        assert (await asyncio.to_thread(answer, {**event, "body": text + " "}, None)) == {"statusCode": 401}

    run(main())


def test_deadlines_of_a_day(broker: Broker) -> None:
    """An invitation that nobody answers ends after a day, and so does an offer: the clock is moved."""

    async def main() -> None:
        buyer = Agent(url=broker.url, token=BUYER, terms=Cups)
        other: Agent[Cups] = Agent(url=broker.url, token=SELLER, terms=Cups)
        async with buyer:
            asked = asyncio.create_task(buyer.negotiate(SELLER, "unanswered", Cups(price=Decimal(60))))
            while not (await other.call("session.list", {}))["sessions"]:
                await other.call("turn.wait", {"seconds": 1})
            await asyncio.to_thread(broker.advance, "25h")
            deal = await asked
            assert (deal.state, deal.outcome) == ("FAILED", "invitation_timeout")
        with pytest.raises(ValueError, match="advance"):
            broker.advance("-1h")
        await other.close()

    run(main())


def test_without_asyncio(broker: Broker) -> None:
    sells: sync.Agent[Cups] = sync.Agent(url=broker.url, token=SELLER, terms=Cups)
    sells.on_invitation(lambda deal: Accept(deal.invitation))
    sells.on_turn(lambda deal: None if deal.agreed else Accept(deal.their_offer))
    buys: sync.Agent[Cups] = sync.Agent(url=broker.url, token=BUYER, terms=Cups)
    buys.on_turn(lambda deal: Close.completed("done") if deal.agreed else None)
    with sells, buys:
        deal = buys.negotiate(SELLER, "cups", Cups(price=Decimal("60.50")))
        assert deal.agreed is not None and deal.agreed.terms.price == Decimal("60.5") and deal.outcome == "completed"
        assert [d.id for d in buys.tender([SELLER], "cups", Cups(price=Decimal("60.50")))] == [deal.id]
        assert any(card["agentId"] == SELLER for card in buys.find())
        for answer in (Accept(deal.their_offer), Counter(deal.their_offer, {"price": 1}), Withdraw("")):
            with pytest.raises(NotAllowed, match=f"{answer.performative} names no offer: their_offer is false while .*; allowed: nothing"):
                buys.say(deal, answer)
        with pytest.raises(TenderError, match="1 of 2 failed, the others are in deals: nobody: schema_invalid: ") as failed:
            buys.tender(["nobody", SELLER], "cups", Cups(price=Decimal("60.50")))
        assert [d.id for d in failed.value.deals] == [deal.id] and isinstance(failed.value.failed["nobody"], Refusal)
        with pytest.raises(Refusal):
            buys.tender(["nobody"], "cups", Cups(price=Decimal("60.50")))


def test_counterparty_follows_its_script(broker: Broker, counterparty: Callable[[str], Counterparty]) -> None:
    buyer = Agent(url=broker.url, token=BUYER, terms=Cups)

    @buyer.on_turn
    async def decide(deal: Deal[Cups]) -> Decision:
        return Close.completed() if deal.agreed else Counter(deal.their_offer, Cups(price=deal.step(60, 100)))

    async def main() -> None:
        async with counterparty(SELLER).offers(price=120, currency="EUR").accepts() as other, buyer:
            asked = asyncio.create_task(buyer.negotiate(SELLER, "cups", Cups(price=Decimal(60))))
            await other.expects_offer(price=60)
            await other.expects_offer(price=70)
            deal = await asked
            assert [act for _, act in await transcript(buyer, deal.id)][-3:] == ["COUNTER", "ACCEPT", "CLOSE"]

    run(main())
