"""An assistant of OpenAI Agents that buys cups. Run it again whenever something happened: it goes on where it was parked.

PARLEY_URL, PARLEY_TOKEN and PARKED (a file) come from the environment. A model of rules stands in for yours.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, RunState, Usage, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic import BaseModel

import parley_asp
from parley_asp import Accept, Close, Counter, Deal, Decision, Escalate, Reject
from parley_asp.bridges.openai_agents import Negotiation


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


class Rules(Model):
    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:
        last = input[-1] if isinstance(input, list) else {}
        if last.get("type") == "function_call_output":
            result = json.loads(last["output"])
            text = ResponseOutputText(annotations=[], text=f"over {result['outcome']} {result['agreed']!r}", type="output_text")
            message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            return ModelResponse(output=[message], usage=Usage(), response_id=None)
        request = json.dumps({"counterparty": "agent://widgets.co/seller", "subject": "cups", "terms": {"price": 60}})
        call = ResponseFunctionToolCall(arguments=request, call_id="call_1", name="negotiate", type="function_call")
        return ModelResponse(output=[call], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


FILE = Path(os.environ["PARKED"])


async def main() -> None:
    set_tracing_disabled(True)
    bridge = Negotiation(buyer, key="order 7")
    assistant: Agent[Any] = Agent(name="Buyer", tools=[bridge.tool], model=Rules())
    if not FILE.exists():
        result = await Runner.run(assistant, "Buy cups")
        FILE.write_text(json.dumps(result.to_state().to_json()))
    state = await RunState.from_json(assistant, json.loads(FILE.read_text()))
    if not await bridge.resume(state):
        print("parked", flush=True)
        if os.environ.get("STAYS"):
            await asyncio.Event().wait()  # until it is killed
    else:
        print((await Runner.run(assistant, state)).final_output, flush=True)
    await buyer.close()


asyncio.run(main())
