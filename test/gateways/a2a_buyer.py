"""A buyer that speaks A2A by its Python SDK: verifies the agent's card, offers, escalates when
the counter is too high, and accepts once a human has ruled."""

import asyncio
import json
import os
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import new_data_part
from a2a.types import GetTaskRequest, ListTasksRequest, Message, Role, SendMessageRequest, TaskState
from a2a.utils.signing import create_signature_verifier
from google.protobuf.json_format import MessageToDict
from a2a.utils.errors import UnsupportedOperationError
from jwt.api_jwk import PyJWK

URL, TOKEN, BINDING = os.environ["A2A_URL"], os.environ["TOKEN"], os.environ["BINDING"]


async def main() -> None:
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
        card = await A2ACardResolver(http, URL).get_agent_card()
        keys = (await http.get(URL + "/.well-known/jwks.json")).json()["keys"]

        def key(kid, jku):
            assert jku == URL + "/.well-known/jwks.json", jku
            return PyJWK(next(k for k in keys if k["kid"] == kid))

        verify = create_signature_verifier(key, ["EdDSA"])
        verify(card)
        forged = type(card)()
        forged.CopyFrom(card)
        forged.name = "Somebody else"
        try:
            verify(forged)
            sys.exit("a forged card verifies")
        except Exception as error:
            assert "signature" in str(error).lower(), error

        config = ClientConfig(streaming=True, httpx_client=http, supported_protocol_bindings=[BINDING], use_client_preference=True)
        client = ClientFactory(config).create(card)
        states, task, context = [], "", ""

        async def say(number: int, action: dict) -> None:
            nonlocal task, context
            message = Message(message_id=f"{BINDING}-{number}", role=Role.ROLE_USER, parts=[new_data_part(action)], task_id=task, context_id=context)
            async for event in client.send_message(SendMessageRequest(message=message)):
                part = getattr(event, event.WhichOneof("payload"))
                if event.HasField("task"):
                    task, context = part.id, part.context_id
                if event.HasField("task") or event.HasField("status_update"):
                    states.append(TaskState.Name(part.status.state))

        await say(1, {"action": "propose", "purpose": "cups", "terms": {"price": 5}})
        assert states[-1] == "TASK_STATE_INPUT_REQUIRED", states
        await say(2, {"action": "escalate", "urgency": "low", "context": {"price": 6}})
        assert "TASK_STATE_AUTH_REQUIRED" in states and states[-1] == "TASK_STATE_INPUT_REQUIRED", states
        await say(3, {"action": "accept"})
        assert states[-1] == "TASK_STATE_COMPLETED", states
        close = {"action": "close", "outcome": "completed"}  # which makes the agreement
        try:
            await say(4, close)
            sys.exit("a task that is over takes a message")
        except UnsupportedOperationError:
            pass
        first, task = await client.get_task(GetTaskRequest(id=task)), ""
        await say(5, close)
        assert task == first.id + ".2" and context == first.context_id and states[-1] == "TASK_STATE_COMPLETED", (task, states)
        assert await client.get_task(GetTaskRequest(id=first.id)) == first

        done = await client.get_task(GetTaskRequest(id=task))
        listed = await client.list_tasks(ListTasksRequest(include_artifacts=True))
        assert [t.id for t in listed.tasks].count(task) == 1
        agreement = MessageToDict(next(a for a in done.artifacts if a.name == "agreement").parts[0].data)
        print(json.dumps({"task": first.id, "history": len(first.history) + len(done.history), "price": agreement["terms"]["price"], "agreement": agreement["agreement_id"]}))


asyncio.run(main())
