"""A buyer and a vendor that use the Python SDK of MCP negotiate at URL, with their tokens."""

import asyncio
import json
import os
from contextlib import AsyncExitStack

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def connect(stack, token):
    http = await stack.enter_async_context(httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60))
    client = await stack.enter_async_context(Client(streamable_http_client(os.environ["URL"], http_client=http)))
    await client.list_tools()  # so that results are held to their schemas

    async def call(name, **arguments):
        result = await client.call_tool(name, arguments)
        return {"refused": result.content[0].text} if result.is_error else result.structured_content

    return call


async def main():
    async with AsyncExitStack() as stack:
        buyer = await connect(stack, os.environ["BUYER"])
        vendor = await connect(stack, os.environ["VENDOR"])
        opened = await buyer("open_session", **{"with": [os.environ["VENDOR_URI"]]}, purpose="1,000 cups", invitationTimeoutMs=600000)
        session = opened["sessionId"]
        invited = await vendor("wait_for_turn")
        assert invited["status"] == "turn", invited
        await vendor("accept", sessionId=session, referenceId=invited["referenceId"])
        news = await buyer(opened["next"]["tool"], **opened["next"]["arguments"])
        assert news["status"] == "news", news
        refused = await buyer("accept", sessionId=session, referenceId="nothing")
        assert "refused" in refused, refused
        await buyer("propose", sessionId=session, type="service-agreement", subject="cups", terms={"price": 5})
        offer = await vendor("wait_for_turn", sessionId=session)
        countered = await vendor("counter", sessionId=session, referenceId=offer["referenceId"], terms={"price": 6})
        turn = await buyer("wait_for_turn", sessionId=session)
        assert turn["referenceId"] == countered["referenceId"], turn
        await buyer("accept", sessionId=session, referenceId=turn["referenceId"])
        verified = await buyer("verify_transcript", sessionId=session)
        assert verified["verified"], verified
        await vendor("close", sessionId=session, outcome="completed")
        listed = await buyer("list_negotiations", status="completed")
        assert listed["success"], listed
        print(json.dumps({"sessionId": session, "entries": verified["entries"], "listed": listed["data"]["count"]}))


asyncio.run(main())
