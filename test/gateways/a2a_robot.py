"""An agent that speaks A2A by its Python SDK and signs its card. It counters an offer at 6."""

import asyncio
import json
import socket
import sys

import uvicorn
from a2a.helpers import new_data_part, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Message, Role
from a2a.utils.signing import create_agent_card_signer
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf.json_format import MessageToDict
from jwt.algorithms import ECAlgorithm
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


class Robot(AgentExecutor):
    async def execute(self, context, event_queue) -> None:
        act = next(MessageToDict(part.data) for part in context.message.parts if part.HasField("data"))
        answer = new_text_part("Noted.")
        if act["performative"] == "PROPOSE" and act["state"] == "CONVERSING":
            answer = new_data_part({"action": "counter", "terms": {"price": 6}})
        await event_queue.enqueue_event(
            Message(message_id="to-" + context.message.message_id, context_id=context.context_id, role=Role.ROLE_AGENT, parts=[answer])
        )

    async def cancel(self, context, event_queue) -> None:
        raise NotImplementedError


listener = socket.create_server(("127.0.0.1", 0))
url = f"http://127.0.0.1:{listener.getsockname()[1]}"
key = ec.generate_private_key(ec.SECP256R1())
jwk = json.loads(ECAlgorithm.to_jwk(key.public_key())) | {"kid": "robot"}
card = AgentCard(
    name="Robot", description="Sells cups.", version="1", default_input_modes=["text/plain"], default_output_modes=["text/plain"],
    capabilities=AgentCapabilities(streaming=True), skills=[AgentSkill(id="sell", name="Sell", description="Sells.", tags=["cups"])],
    supported_interfaces=[AgentInterface(url=url + "/", protocol_binding="JSONRPC", protocol_version="1.0")],
)
card = create_agent_card_signer(key, {"alg": "ES256", "kid": "robot", "jku": url + "/keys", "typ": "JOSE"})(card)
handler = DefaultRequestHandler(agent_executor=Robot(), task_store=InMemoryTaskStore(), agent_card=card)
app = Starlette(routes=[
    *create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/"), Route("/keys", lambda _: JSONResponse({"keys": [jwk]})),
])
server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
print(url, flush=True)
sys.exit(asyncio.run(server.serve(sockets=[listener])))
