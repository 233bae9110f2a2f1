"""A model that follows rules negotiates with the five tools."""

from __future__ import annotations

import json
from typing import Any

from test_agent import BUYER, SELLER, run, seller

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
