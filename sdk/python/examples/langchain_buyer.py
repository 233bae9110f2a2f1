"""A LangChain assistant that buys cups. Run it again whenever something happened: it goes on where it was parked.

PARLEY_URL, PARLEY_TOKEN and PARKED (a file) come from the environment. A model of rules stands in for yours.
"""

import asyncio
import json
import os
from decimal import Decimal
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pydantic import BaseModel

from parley_asp import Accept, Agent, Close, Counter, Deal, Decision, Escalate, Reject
from parley_asp.bridges.langchain import negotiate, parked, resume


class Cups(BaseModel):
    price: Decimal
    currency: str = "EUR"


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


class Rules(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "rules"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            result = json.loads(str(last.content))
            said = AIMessage(f"over {result['outcome']} {result['agreed']!r}")
        else:
            request = {"counterparty": "agent://widgets.co/seller", "subject": "cups", "terms": {"price": 60}}
            said = AIMessage("", tool_calls=[{"name": "negotiate", "args": request, "id": "call_1"}])
        return ChatResult(generations=[ChatGeneration(message=said)])


async def main() -> None:
    thread: Any = {"configurable": {"thread_id": "cups"}}
    async with AsyncSqliteSaver.from_conn_string(os.environ["PARKED"]) as checkpoints:
        assistant: Any = create_agent(Rules(), [negotiate(buyer, key="order 7")], checkpointer=checkpoints)
        begun = (await assistant.aget_state(thread)).created_at is not None
        result = await resume(assistant, thread) if begun else await assistant.ainvoke({"messages": "Buy cups"}, config=thread)
        waits = parked(result)
        print(f"parked {waits['state']}" if waits else result["messages"][-1].content, flush=True)
        if waits and os.environ.get("STAYS"):
            await asyncio.Event().wait()  # until it is killed
    await buyer.close()


asyncio.run(main())
