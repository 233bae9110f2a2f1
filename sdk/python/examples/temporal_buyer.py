"""A Temporal worker that buys cups. Kill it, and run it again: the workflow goes on where it was parked.

PARLEY_URL, PARLEY_TOKEN and TEMPORAL_ADDRESS come from the environment, and TEMPORAL_NAMESPACE if it is not "default".
"""

import asyncio
import os
from decimal import Decimal
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from pydantic import BaseModel

    from parley_asp import Accept, Agent, Close, Counter, Deal, Decision, Escalate, Reject
    from parley_asp.bridges.temporal import Negotiate, Negotiation, Request, negotiated


class Cups(BaseModel):
    price: Decimal
    currency: str = "EUR"


def decide(deal: Deal[Cups]) -> Decision:
    if deal.agreed:
        return Close.completed()
    offer = deal.their_offer
    if offer.terms.price > 100:
        return Counter(offer, Cups(price=deal.step(60, 100)))
    if offer.terms.price > 90 and not (approval := deal.approval(offer)):
        return Reject(offer, "above 90") if approval.decision else Escalate(offer, why="above 90")
    return Accept(offer)


@workflow.defn
class Order:
    @workflow.run
    async def run(self, seller: str) -> dict[str, Any]:
        return await negotiated(Request(seller, "cups", {"price": 60}, key=workflow.info().workflow_id, pause=1))


async def main() -> None:
    buyer = Agent.from_env(terms=Cups)
    buyer.on_turn(decide)
    client = await Client.connect(os.environ["TEMPORAL_ADDRESS"], namespace=os.environ.get("TEMPORAL_NAMESPACE", "default"))
    async with Worker(client, task_queue="buyer", workflows=[Order, Negotiate], activities=[Negotiation(buyer).look]):
        order = await client.start_workflow(
            Order.run,
            "agent://widgets.co/seller",
            id="order 7",
            task_queue="buyer",
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
        deal = await order.result()
        print(f"over {deal['outcome']} {deal['agreed']}", flush=True)
    await buyer.close()


if __name__ == "__main__":
    asyncio.run(main())
