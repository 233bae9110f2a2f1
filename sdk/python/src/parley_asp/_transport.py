"""What an agent needs of a way to the broker, over HTTP or NATS."""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from ._json import JSON, dumps
from ._sign import Signer
from .errors import ParleyError, Refusal, passes

R = TypeVar("R")

TraceParent = Callable[[], "str | None"]

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0

OVER_HTTP = ("http", "https")
OVER_NATS = ("nats", "tls", "ws", "wss")


class Transport(Protocol):
    """A way to the broker. Each method answers once: it raises a Refusal or NoAnswer, and repeats nothing.

    What has a ``trace``, a traceparent, joins it.
    """

    identity: str
    """What ids derive from: the agent's URI, or what stands for it."""

    @property
    def signer(self) -> Signer | None:
        """What signs for the agent; None for a hosted one."""

    async def call(self, verb: str, request: JSON, trace: str | None = None) -> Any:
        """Call a verb of the api (PROTOCOL.md section 9)."""

    async def say(self, session: str, act: JSON, head: JSON | None, message_id: str, trace: str | None = None) -> JSON:
        """Say an act on the entry that is the head, or without one the first act of a session."""

    async def close(self) -> None: ...


def url_of(url: str | None, schemes: tuple[str, ...]) -> str:
    """The URL of a broker, if it has a host and one of the schemes.

    Raises:
        ParleyError: it has not, or there is none.
    """
    try:
        parts = urlsplit(url or "")
        if parts.scheme in schemes and parts.hostname and parts.port != 0:  # a port that is no number raises
            return str(url)
    except ValueError:
        pass
    said = f"{shown(url)!r} is no URL of a broker" if url else "the URL of the broker is missing"
    begins = ", ".join(f"{scheme}://" for scheme in schemes)
    raise ParleyError(f"{said}: set PARLEY_URL or url=, such as http://127.0.0.1:8080 (it begins with {begins})")


def shown(url: object) -> str:
    """A URL without its password and its query, for people."""
    return re.sub(r"[^/]*@", "", str(url).partition("?")[0])


def uuid7_of(*parts: Any) -> str:
    """A UUIDv7 that the same parts always make, in every SDK, so that what is said again is the same act."""
    raw = bytearray(hashlib.sha256(dumps(list(parts))).digest()[:16])
    raw[6], raw[8] = raw[6] & 0x0F | 0x70, raw[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(raw)))


def trace_of(names: TraceParent | None) -> str | None:
    """The trace that a program names now; None for what is no traceparent of W3C Trace Context."""
    trace = names() if names is not None else None
    return trace if trace and _TRACEPARENT.fullmatch(trace) else None


async def patiently(do: Callable[[], Awaitable[R]], give_up: float | None = None) -> R:
    """Do something again until it is answered, for at most ``give_up`` seconds. Only an error that passes has it repeated."""
    loop = asyncio.get_running_loop()
    began, pause = loop.time(), FIRST_PAUSE
    while True:
        try:
            return await do()
        except ParleyError as error:
            if not passes(error):
                raise
            after = error.retry_after if isinstance(error, Refusal) and error.retry_after else pause * random.uniform(0.5, 1)
            if give_up is not None and loop.time() - began + after > give_up:
                raise
        await asyncio.sleep(after)
        pause = min(pause * 2, LONGEST_PAUSE)
