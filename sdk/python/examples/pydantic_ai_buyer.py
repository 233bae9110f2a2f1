"""A Pydantic AI assistant that buys cups. Run it again whenever something happened: it goes on where it was parked.

PARLEY_URL, PARLEY_TOKEN and PARKED (a file) come from the environment. A model of rules stands in for yours.
"""

import asyncio
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, ModelMessagesTypeAdapter
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

import parley_asp
from parley_asp import Accept, Close, Counter, Deal, Decision, Escalate, Reject
from parley_asp.bridges.pydantic_ai import Negotiation


class Cups(BaseModel):
    price: Decimal
    currency: str = "EUR"


buyer = parley_asp.Agent.from_env(terms=Cups)


@buyer.on_turn
def decide(deal: Deal[Cups]) -> Decision:
    if deal.agreed:
        return Close.completed()
    offer = deal.their_offer
    if offer.terms.price > 100:
        return Counter(offer, Cups(price=deal.step(60, 100)))
    if offer.terms.price > 90 and not (approval := deal.approval(offer)):
        return Reject(offer, "above 90") if approval.decision else Escalate(offer, why="above 90")
    return Accept(offer)


def model(messages: list[Any], info: Any) -> ModelResponse:
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        result: Any = last.content
        return ModelResponse(parts=[TextPart(f"over {result['outcome']} {result['agreed']!r}")])
    request = {"counterparty": "agent://widgets.co/seller", "subject": "cups", "terms": {"price": 60}}
    return ModelResponse(parts=[ToolCallPart("negotiate", request)])


FILE = Path(os.environ["PARKED"])


async def main() -> None:
    bridge = Negotiation(buyer, key="order 7")
    assistant = Agent(FunctionModel(model), tools=[bridge.tool], output_type=[str, DeferredToolRequests])
    if not FILE.exists():
        result = await assistant.run("Buy cups")
        FILE.write_bytes(result.all_messages_json())
    messages = ModelMessagesTypeAdapter.validate_json(FILE.read_bytes())
    calls = [part for part in messages[-1].parts if isinstance(part, ToolCallPart)]
    results = await bridge.resume(DeferredToolRequests(calls=calls))
    if results is None:
        print("parked", flush=True)
        if os.environ.get("STAYS"):
            await asyncio.Event().wait()  # until it is killed
    else:
        print((await assistant.run(message_history=messages, deferred_tool_results=results)).output, flush=True)
    await buyer.close()


asyncio.run(main())
