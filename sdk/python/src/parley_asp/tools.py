"""Five tools and a prompt with which any model negotiates, as the broker's MCP server defines them.

::

    async with NegotiationTools(url, token) as tools:
        model.run(system=tools.instructions, tools=tools.openai(), call=tools.call)

The definitions, their bounds and the fences around what the other side wrote are the broker's
(docs/GATEWAYS.md, MCP). The agent is hosted. A model never decides what a human has to.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import httpx

from ._json import JSON, dumps, loads
from ._transport import OVER_HTTP, TraceParent, patiently, trace_of, url_of
from .errors import NoAnswer, ParleyError, Unauthorized

# Within how many seconds a model's calls are of one step. Who waits for longer may have others decide meanwhile.
_ONE_STEP = 1.0
_UNREAD = "you asked for this negotiation at the same time, and nothing was said: read it before you decide, or give a referenceId"


@dataclass(frozen=True)
class Tool:
    """A tool: its name, what it does, and the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: JSON
    reads: bool  # it changes nothing


class NegotiationTools:
    """The tools of one hosted agent. ``everything`` has the full set instead of five.

    ``traceparent`` is that of :class:`parley_asp.Agent`.
    """

    def __init__(self, url: str | None, token: str, *, everything: bool = False, traceparent: TraceParent | None = None) -> None:
        self._client = httpx.AsyncClient(
            base_url=url_of(url, OVER_HTTP).rstrip("/"),
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"},
            timeout=httpx.Timeout(20, read=80),
        )
        self._path = "/mcp?tools=all" if everything else "/mcp"
        self._traceparent = traceparent
        self._ids = itertools.count(1)
        self._reading: Counter[str] = Counter()  # calls under way, by negotiation
        self._began: dict[str, float] = {}  # the newest of them
        self.instructions = ""
        self.tools: tuple[Tool, ...] = ()

    async def __aenter__(self) -> NegotiationTools:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "parley-asp", "version": "0"}}
        self.instructions = (await patiently(lambda: self._rpc("initialize", hello), 30))["instructions"]
        listed = (await patiently(lambda: self._rpc("tools/list", {}), 30))["tools"]
        self.tools = tuple(
            Tool(t["name"], t["description"], t["inputSchema"], bool(t.get("annotations", {}).get("readOnlyHint"))) for t in listed
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._client.aclose()

    def openai(self) -> list[JSON]:
        """The definitions as OpenAI's chat completions and its like take them."""
        return [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}} for t in self.tools
        ]

    def anthropic(self) -> list[JSON]:
        """The definitions as Anthropic's messages take them."""
        return [{"name": t.name, "description": t.description, "input_schema": t.parameters} for t in self.tools]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool, and return what a model reads: JSON, also of a refusal, which says what is allowed instead.

        A call without an answer is repeated where that says nothing twice; else the model is told to look first.
        """
        asked = dict(arguments)
        tool = next((t for t in self.tools if t.name == name), None)
        if tool is None:
            raise ParleyError(f"no tool {name}")
        # The broker makes a repeat of an answer the same act only if the call names what it answers.
        again = tool.reads or name != "respond_to_negotiation" or "referenceId" in asked
        of = str(asked.get("negotiationId"))
        answers = not again and "ifHead" not in asked and str(asked.get("action")).lower() in ("accept", "reject", "counter", "clarify")
        if answers and self._reading.get(of) and time.monotonic() - self._began[of] < _ONE_STEP:
            return dumps({"success": False, "code": "chain_conflict", "error": _UNREAD}).decode()
        if again and not tool.reads:
            asked.setdefault("idempotencyKey", uuid.uuid4().hex)
        if tool.reads:
            self._reading[of] += 1
            self._began[of] = time.monotonic()
        try:
            result = await patiently(lambda: self._rpc("tools/call", {"name": name, "arguments": asked}), 90 if again else 0)
        except NoAnswer:
            return dumps({"success": False, "error": "no answer: read the negotiation before you say it again"}).decode()
        finally:
            if tool.reads:
                self._reading[of] -= 1
                if not self._reading[of]:
                    del self._reading[of], self._began[of]
        return "\n".join(part["text"] for part in result["content"] if part["type"] == "text")

    async def _rpc(self, method: str, params: JSON) -> Any:
        body = dumps({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})
        headers = {"Content-Type": "application/json"}
        if trace := trace_of(self._traceparent):
            headers["traceparent"] = trace
        try:
            answer = await self._client.post(self._path, content=body, headers=headers)
        except httpx.TransportError as error:
            raise NoAnswer(f"{method}: {type(error).__name__}") from None
        if answer.status_code in (429, 502, 503, 504):
            raise NoAnswer(f"{method} is answered {answer.status_code}")
        if answer.status_code == 401:
            raise Unauthorized("the token is missing, wrong, expired or removed")
        text = answer.text
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            text = next((line[5:] for line in reversed(text.split("\n")) if line.startswith("data:")), "{}")
        try:
            reply = loads(text)
        except ValueError:
            raise ParleyError(f"{method} is answered {answer.status_code} by something else than parley") from None
        if "result" not in reply:
            raise ParleyError(f"{method}: {(reply.get('error') or {}).get('message') or answer.status_code}")
        return reply["result"]
