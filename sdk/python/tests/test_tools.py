"""A model that follows rules negotiates with the five tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from test_agent import BUYER, SELLER, run, seller

from parley_asp.errors import Unauthorized
from parley_asp.testing import Broker
from parley_asp.tools import NegotiationTools


def test_a_model_buys(broker: Broker) -> None:
    """It sees the definitions and results, as a model would, and nothing else; it buys in at most six calls."""

    async def main() -> None:
        async with seller(broker, least=70) as sells, NegotiationTools(broker.url, BUYER) as tools:
            assert [d["function"]["name"] for d in tools.openai()] == [t.name for t in tools.tools]
            assert all(d["input_schema"]["type"] == "object" for d in tools.anthropic())
            names = {t.name for t in tools.tools}
            assert len(names) == 5 and all(name in tools.instructions for name in ("open_negotiation", "wait_for_turn"))
            calls = 0

            async def call(name: str, **arguments: Any) -> Any:
                nonlocal calls
                calls += 1
                return json.loads(await tools.call(name, arguments))

            terms = {"price": 60, "currency": "EUR"}
            opened = await call("open_negotiation", **{"with": [SELLER], "purpose": "cups", "terms": terms, "seconds": 20})
            says = {"negotiationId": opened["negotiationId"]}
            view = await call("wait_for_turn", negotiationId=opened["negotiationId"], seconds=20)
            while not view.get("agreed"):
                offer = next(o for o in view["offers"] if o["status"] == "open" and not o["mine"])
                dear = offer["terms"]["price"] > 110
                answer = {"action": "counter", "terms": {"price": 65}, "seconds": 20} if dear else {"action": "accept"}
                said = await call("respond_to_negotiation", **says, **answer, referenceId=offer["id"], ifHead=view["head"])
                assert said["success"], said
                view = said.get("view") or await call("get_negotiation", negotiationId=opened["negotiationId"])
            agreed = next(o for o in view["offers"] if o["id"] == view["agreed"])
            assert agreed["terms"]["price"] <= 110 and calls <= 6, (calls, view)
            refused = await call("respond_to_negotiation", **says, action="withdraw", referenceId="p9")
            assert not refused["success"] and refused["code"], refused
            assert (await sells.deal(opened["negotiationId"])).agreed

    run(main())


def test_reading_and_deciding_in_one_step(broker: Broker) -> None:
    """What a model says about an offer that it was yet to read is not said."""

    async def main() -> None:
        async with seller(broker, least=70) as sells, NegotiationTools(broker.url, BUYER) as tools:
            terms = {"price": 60, "currency": "EUR"}
            opened = json.loads(await tools.call("open_negotiation", {"with": [SELLER], "purpose": "cups", "terms": terms, "seconds": 20}))
            of = {"negotiationId": opened["negotiationId"]}
            offers: list[Any] = []
            while not any(not o["mine"] for o in offers):
                offers = json.loads(await tools.call("wait_for_turn", {**of, "seconds": 20}))["offers"]
            accept = {**of, "action": "accept"}
            _, said = await asyncio.gather(tools.call("get_negotiation", of), tools.call("respond_to_negotiation", accept))
            assert "nothing was said" in said
            assert not (await sells.deal(of["negotiationId"])).agreed
            assert json.loads(await tools.call("respond_to_negotiation", accept))["success"]

    run(main())


def test_a_wrong_token_is_said(broker: Broker) -> None:
    """The program learns why it may not call."""

    async def main() -> None:
        with pytest.raises(Unauthorized, match="missing, wrong, expired or removed"):
            async with NegotiationTools(broker.url, "nobody"):
                pass

    run(main())
