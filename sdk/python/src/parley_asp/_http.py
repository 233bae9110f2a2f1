"""The broker over HTTP: hosted with a token, or with one's own key beside it."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote

import httpx

from ._json import JSON, dumps, loads
from ._sign import Signer, ahead_of
from .errors import NoAnswer, StaleTimestamp, refusal

_PATHS = {  # of verbs: method and path; members of the request that the path does not name go along
    "session.list": ("GET", "/sessions"),
    "session.snapshot": ("GET", "/sessions/{sessionId}/snapshot"),
    "session.messages": ("GET", "/sessions/{sessionId}/messages"),
    "turn.wait": ("POST", "/turns/wait"),
    "wakeup.set": ("PUT", "/wakeup"),
    "check.get": ("GET", "/checks/{sessionId}"),
    "agent.search": ("GET", "/discover"),
    "agent.get": ("GET", "/agents/{agentId}/card"),
    "discovery.call": ("POST", "/discover"),
    "escalation.list": ("GET", "/escalations"),
    "agreement.list": ("GET", "/agreements"),
    "agreement.get": ("GET", "/agreements/{agreementId}"),
}
_RENAMED = {"session.messages": {"since": "since_sequence"}, "agent.search": {"minTrust": "min_trust"}}


class HTTP:
    """A transport over HTTP."""

    def __init__(self, url: str, token: str, signer: Signer | None = None, agent: str | None = None) -> None:
        self.identity = agent or (token if token.startswith("agent://") else token.rpartition("_")[0]) or token
        self._signer = signer
        self._ahead = 0.0  # seconds of the broker's clock before this one
        self._client = httpx.AsyncClient(
            base_url=url.rstrip("/") + "/v1/asp",
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(20, read=70),
            limits=httpx.Limits(max_connections=200, max_keepalive_connections=20),
        )

    async def call(self, verb: str, request: JSON) -> Any:
        method, path = _PATHS[verb]
        rest = dict(request)
        if verb == "wakeup.set" and "sessionId" in rest:
            path = "/sessions/{sessionId}/wakeup"
        for name in list(rest):
            if "{" + name + "}" in path:
                path = path.replace("{" + name + "}", quote(str(rest.pop(name)), safe=""))
        if method == "GET":
            names = _RENAMED.get(verb, {})
            return await self._send(method, path, params={names.get(name, name): value for name, value in rest.items()})
        return await self._send(method, path, content=dumps(rest))

    async def say(self, session: str, act: JSON, head: JSON | None, message_id: str) -> JSON:
        path, headers = f"/sessions/{session}/messages", {}
        if self._signer is not None:
            now = time.time() + self._ahead
            content = self._signer.envelope(session, act, head, message_id, now)
            headers["Content-Type"] = "application/asp+json"
        else:
            content = dumps({**act, "messageId": message_id})
            if head is not None:
                headers["If-Match"] = f'"{head["hash"]}"'
        try:
            answer: JSON = await self._send("POST", path, content=content, headers=headers)
        except StaleTimestamp as error:
            self._ahead = ahead_of(error)
            raise
        return answer

    async def _send(
        self, method: str, path: str, *, content: bytes | None = None, params: JSON | None = None, headers: dict[str, str] | None = None
    ) -> Any:
        headers = {"Content-Type": "application/json", **(headers or {})} if content is not None else {}
        try:
            answer = await self._client.request(method, path, content=content, params=params, headers=headers)
        except httpx.TransportError as error:
            raise NoAnswer(f"{method} {path}: {type(error).__name__}") from None
        if answer.status_code < 300:
            return loads(answer.content) if answer.content else {}
        try:
            problem = loads(answer.content)
            if not isinstance(problem, dict) or "code" not in problem:
                raise ValueError
        except ValueError:
            raise NoAnswer(f"{method} {path} is answered {answer.status_code} by something else than parley") from None
        after = answer.headers.get("retry-after", "")
        raise refusal(problem, float(after) if after.isdigit() else None)

    async def close(self) -> None:
        await self._client.aclose()
