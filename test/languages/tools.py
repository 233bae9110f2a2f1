"""A buyer that has the five tools of MCP alone, as a model would. It prints its session and the price."""

import asyncio
import json
import os

from parley_asp.tools import NegotiationTools


async def main() -> None:
    async with NegotiationTools(os.environ["PARLEY_URL"], os.environ["PARLEY_TOKEN"]) as tools:

        async def call(name, **arguments):
            return json.loads(await tools.call(name, arguments))

        best, terms = int(os.environ["BEST"]), {"price": 60, "currency": "EUR"}
        opened = await call("open_negotiation", **{"with": [os.environ["PEER"]], "purpose": "cups", "terms": terms, "seconds": 20})
        session = opened["negotiationId"]
        view = await call("get_negotiation", negotiationId=session)
        while not view.get("agreed"):
            offer = next((o for o in view["offers"] if o["status"] == "open" and not o["mine"]), None)
            if offer is None:
                await call("wait_for_turn", negotiationId=session, seconds=20)
            else:
                dear = offer["terms"]["price"] > best
                answer = {"action": "counter", "terms": {"price": best}} if dear else {"action": "accept"}
                await call("respond_to_negotiation", negotiationId=session, **answer, referenceId=offer["id"], ifHead=view["head"])
            view = await call("get_negotiation", negotiationId=session)
        agreed = next(o for o in view["offers"] if o["id"] == view["agreed"])
        fills = {"outcome": "completed"}
        said = await call("respond_to_negotiation", negotiationId=session, action="close", fills=fills, ifHead=view["head"])
        assert said["success"], said
        print(session, agreed["terms"]["price"], flush=True)


asyncio.run(main())
