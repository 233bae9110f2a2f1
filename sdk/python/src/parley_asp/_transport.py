"""What an agent needs of a way to the broker, over HTTP or NATS."""

from __future__ import annotations

import asyncio
import hashlib
import random
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from ._json import JSON, dumps
from ._sign import Signer
from .errors import NoAnswer, RateLimited, Refusal, Unavailable

R = TypeVar("R")

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0


class Transport(Protocol):
    """A way to the broker. Each method answers once: it raises a Refusal or NoAnswer, and repeats nothing."""

    identity: str
    """What ids derive from: the agent's URI, or what stands for it."""

    @property
    def signer(self) -> Signer | None:
        """What signs for the agent; None for a hosted one."""

    async def call(self, verb: str, request: JSON) -> Any:
        """Call a verb of the api (PROTOCOL.md section 9)."""

    async def say(self, session: str, act: JSON, head: JSON | None, message_id: str) -> JSON:
        """Say an act on the entry that is the head, or without one the first act of a session."""

    async def close(self) -> None: ...


def uuid7_of(*parts: Any) -> str:
    """A UUIDv7 that the same parts always make, in every SDK, so that what is said again is the same act."""
    raw = bytearray(hashlib.sha256(dumps(list(parts))).digest()[:16])
    raw[6], raw[8] = raw[6] & 0x0F | 0x70, raw[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(raw)))


async def patiently(do: Callable[[], Awaitable[R]], give_up: float | None = None) -> R:
    """Do something again until it is answered, for at most ``give_up`` seconds.

    Only what may be answered later is repeated: no answer, ``unavailable`` and ``rate_limited``.
    """
    loop = asyncio.get_running_loop()
    began, pause = loop.time(), FIRST_PAUSE
    while True:
        try:
            return await do()
        except (NoAnswer, Unavailable, RateLimited) as error:
            after = error.retry_after if isinstance(error, Refusal) and error.retry_after else pause * random.uniform(0.5, 1)
            if give_up is not None and loop.time() - began + after > give_up:
                raise
        await asyncio.sleep(after)
        pause = min(pause * 2, LONGEST_PAUSE)
