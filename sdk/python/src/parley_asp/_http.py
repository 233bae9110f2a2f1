"""The broker over HTTP: hosted with a token, or with one's own key beside it."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote

import httpx

from ._json import JSON, encode, loads
from ._sign import Signer, ahead_of
from ._transport import shown
from .errors import NoAnswer, Refusal, StaleTimestamp, VersionUnsupported, refusal

CONTRACT = 1  # of the broker's api, as GET /v1/asp says it

_PATHS = {  # of verbs: method and path; members of the request that the path does not name go along
    "session.get": ("GET", "/sessions/{sessionId}"),
    "session.list": ("GET", "/sessions"),
    "session.snapshot": ("GET", "/sessions/{sessionId}/snapshot"),
    "session.messages": ("GET", "/sessions/{sessionId}/messages"),
    "turn.wait": ("POST", "/turns/wait"),
    "wakeup.set": ("PUT", "/wakeup"),
    "check.get": ("GET", "/checks/{sessionId}"),
    "agent.search": ("GET", "/discover"),
    "agent.get": ("GET", "/agents/{agentId}/card"),
    "discovery.call": ("POST", "/discover"),
    "schema.put": ("PUT", "/schemas/{name}"),
    "schema.get": ("GET", "/schemas/{name}"),
    "schema.list": ("GET", "/schemas"),
    "escalation.list": ("GET", "/escalations"),
    "obligation.list": ("GET", "/obligations"),
    "dispute.list": ("GET", "/disputes"),
    "agreement.list": ("GET", "/agreements"),
    "agreement.get": ("GET", "/agreements/{agreementId}"),
}
_RENAMED = {"session.messages": {"since": "since_sequence"}, "agent.search": {"minTrust": "min_trust"}}


class HTTP:
    """A transport over HTTP."""

    def __init__(self, url: str, token: str, signer: Signer | None = None, agent: str | None = None) -> None:
        self.identity = agent or (token if token.startswith("agent://") else token.rpartition("_")[0]) or token
        self.signer = signer
        self._contract = 0  # that the broker speaks, once it was asked
        self._ahead = 0.0  # seconds of the broker's clock before this one
        self._client = httpx.AsyncClient(
            base_url=url.rstrip("/") + "/v1/asp",
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(20, read=70),
            limits=httpx.Limits(max_connections=200, max_keepalive_connections=20),
        )

    async def _checked(self) -> None:
        """Refuse a broker that speaks another contract. One that does not say is of before contracts had numbers."""
        if self._contract:
            return
        try:
            about = await self._send("GET", str(self._client.base_url).rstrip("/"))
        except Refusal as refused:
            if refused.code != "malformed":
                raise
            about = {}
        if (said := about.get("contract", CONTRACT)) != CONTRACT:
            raise VersionUnsupported(f"this SDK speaks contract {CONTRACT}, and the broker {about.get('version')} contract {said}")
        self._contract = CONTRACT

    async def call(self, verb: str, request: JSON, trace: str | None = None) -> Any:
        await self._checked()
        method, path = _PATHS[verb]
        rest = dict(request)
        if verb == "wakeup.set" and "sessionId" in rest:
            path = "/sessions/{sessionId}/wakeup"
        for name in list(rest):
            if "{" + name + "}" in path:
                path = path.replace("{" + name + "}", quote(str(rest.pop(name)), safe=""))
        if method == "GET":
            names = _RENAMED.get(verb, {})
            return await self._send(method, path, params={names.get(name, name): value for name, value in rest.items()}, trace=trace)
        return await self._send(method, path, content=encode(rest), trace=trace)

    async def say(self, session: str, act: JSON, head: JSON | None, message_id: str, trace: str | None = None) -> JSON:
        await self._checked()
        path, headers = f"/sessions/{session}/messages", {}
        if self.signer is not None:
            now = time.time() + self._ahead
            content = self.signer.envelope(session, act, head, message_id, now)
            headers["Content-Type"] = "application/asp+json"
        else:
            content = encode({**act, "messageId": message_id})
            if head is not None:
                headers["If-Match"] = f'"{head["hash"]}"'
        try:
            answer: JSON = await self._send("POST", path, content=content, headers=headers, trace=trace)
        except StaleTimestamp as error:
            self._ahead = ahead_of(error)
            raise
        return answer

    async def _send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        params: JSON | None = None,
        headers: dict[str, str] | None = None,
        trace: str | None = None,
    ) -> Any:
        headers = {"Content-Type": "application/json", **(headers or {})} if content is not None else {}
        if trace is not None:
            headers["traceparent"] = trace
        try:
            answer = await self._client.request(method, path, content=content, params=params, headers=headers)
        except httpx.RequestError as error:  # also of an answer that cannot be decoded
            raise NoAnswer(f"{method} {shown(error.request.url)}: {type(error).__name__}") from None
        well = answer.status_code < 300
        try:
            said = loads(answer.content) if answer.content or not well else {}
            if not isinstance(said, dict) or (not well and "code" not in said):
                raise ValueError
        except ValueError:
            raise NoAnswer(f"{method} {shown(answer.url)} is answered {answer.status_code} by something else than parley") from None
        if well:
            return said
        after = answer.headers.get("retry-after", "")
        raise refusal(said, float(after) if after.isdigit() else None)

    async def close(self) -> None:
        await self._client.aclose()
