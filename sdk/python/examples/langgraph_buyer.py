"""A LangGraph agent that buys cups. Run it again whenever something happened: it goes on where it was parked.

PARLEY_URL, PARLEY_TOKEN and PARKED (a file) come from the environment.
"""

import asyncio
import os
from decimal import Decimal
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

from parley_asp import Accept, Agent, Close, Counter, Deal, Decision, Escalate, Reject
from parley_asp.bridges.langgraph import negotiation, parked, resume


class Cups(BaseModel):
    price: Decimal
    currency: str = "EUR"


class State(TypedDict, total=False):
    seller: str
    deal: dict[str, Any]


buyer = Agent.from_env(terms=Cups)


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


async def main() -> None:
    graph = StateGraph(State)
    graph.add_node("negotiate", negotiation(buyer, lambda state: buyer.open(state["seller"], "cups", Cups(price=Decimal(60)))))
    graph.add_edge(START, "negotiate")
    graph.add_edge("negotiate", END)
    thread: Any = {"configurable": {"thread_id": "cups"}}
    async with AsyncSqliteSaver.from_conn_string(os.environ["PARKED"]) as checkpoints:
        app = graph.compile(checkpointer=checkpoints)
        begun = (await app.aget_state(thread)).created_at is not None
        result = await resume(app, thread) if begun else await app.ainvoke({"seller": "agent://widgets.co/seller"}, config=thread)
        waits = parked(result)
        print(f"parked {waits['state']}" if waits else f"over {result['deal']['outcome']} {result['deal']['agreed']}", flush=True)
        if waits and os.environ.get("STAYS"):
            await asyncio.Event().wait()  # until it is killed
    await buyer.close()


asyncio.run(main())
