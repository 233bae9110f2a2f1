"""Wake-up calls (GATEWAYS.md G9): an agent that sleeps is called when a session concerns it.

``PUT /v1/asp/wakeup`` (``agent.call("wakeup.set", {"url": …, "secret": …})``) names the URL. Each call is
signed as Standard Webhooks are, and repeated until it is answered with 2xx; so a handler may die.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ._json import JSON, loads
from .agent import Agent
from .deal import Deal
from .errors import ParleyError

TOLERANCE = 300  # seconds between the call's clock and this one
_LARGEST = 64 << 10  # bytes of a call
_SHORTEST = 24  # bytes of a secret


class Forged(ParleyError):
    """The call is not signed with the secret, or is too old."""


def verify(secret: str, headers: Mapping[str, str], body: bytes, now: float | None = None) -> JSON:
    """The body of a call, if it is signed with the secret (``whsec_…``).

    Raises:
        Forged: it is not, or its time is more than five minutes off.
        ParleyError: the secret is none, or shorter than the broker takes.
    """
    key = _key(secret)
    given = {name.lower(): value for name, value in headers.items()}
    stamp, signatures = given.get("webhook-timestamp", ""), given.get("webhook-signature", "")
    try:
        off = abs((time.time() if now is None else now) - int(stamp))
    except ValueError:
        raise Forged("the call has no time") from None
    signed = f"{given.get('webhook-id', '')}.{stamp}.".encode() + body
    right = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    if off > TOLERANCE or not any(hmac.compare_digest(right.encode(), s.encode()) for s in signatures.split()):
        raise Forged("the call is not signed with the secret, or is too old")
    call: JSON = loads(body)
    return call


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) < _SHORTEST:
        raise ParleyError(f"the secret of the wakeup is whsec_ and {_SHORTEST} to 64 bytes in base64")
    return key


async def handle(agent: Agent[Any], secret: str, headers: Mapping[str, str], body: bytes) -> Deal[Any]:
    """Answer a call: decide in its session until there is nothing to do.

    Raises:
        Forged: answer 401.
        TermsError, NotAllowed, LoopError: answer 204. They follow from the session, so the same call would end alike. So it is after
            UnknownSession and AuthorityExceeded: the agent has no part in it.
        Exception: answer 503 after any other, and the call comes again.
    """
    return await agent.reduce(str(verify(secret, headers, body)["sessionId"]))


async def _status(agent: Agent[Any], secret: str, headers: Mapping[str, str], body: bytes) -> int:
    """Answer a call, and say how. What is no ParleyError is raised, so that the call comes again."""
    try:
        session = str(verify(secret, headers, body)["sessionId"])
    except Forged:
        return 401
    return 204 if await agent._reduce_called(session) else 503


Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class asgi:
    """An ASGI application that answers calls: ``app.add_route("/wake", asgi(agent, secret), methods=["POST"])`` in FastAPI or Starlette."""

    def __init__(self, agent: Agent[Any], secret: str) -> None:
        _key(secret)  # raises
        self._agent, self._secret = agent, secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more and len(body) <= _LARGEST:
            part = await receive()
            if part["type"] == "http.disconnect":
                return
            body, more = body + part.get("body", b""), part.get("more_body", False)
        status = 413 if len(body) > _LARGEST else 204
        if status == 204:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            status = await _status(self._agent, self._secret, headers, body)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def lambda_handler(make: Callable[[], Agent[Any]], secret: str) -> Callable[[JSON, Any], JSON]:
    """A handler of AWS Lambda behind a function URL; ``make`` makes the agent of one call, after which it is closed."""
    _key(secret)  # raises

    def answer(event: JSON, _context: Any) -> JSON:
        text = event.get("body") or ""
        body = base64.b64decode(text) if event.get("isBase64Encoded") else text.encode()

        async def once() -> int:
            agent = make()
            try:
                return await _status(agent, secret, event.get("headers") or {}, body)
            finally:
                await agent.close()

        return {"statusCode": asyncio.run(once())}

    return answer


__all__ = ["Forged", "asgi", "handle", "lambda_handler", "verify"]
