"""The broker over NATS, with one's own key."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import nats
import nats.errors
from nats.aio.client import Client

from ._json import JSON, dumps, loads
from ._sign import Signer, ahead_of, token_of
from .errors import NoAnswer, ParleyError, StaleTimestamp, Unauthorized, refusal

R = TypeVar("R")

_CONNECTS = 5.0
_TIMEOUT = 20.0
_WAITS = 15.0  # seconds beyond what a verb waits by itself


class NATS:
    """A transport over NATS. It connects with the first call, and again for as long as it takes."""

    def __init__(self, url: str, signer: Signer, login: str | None) -> None:
        self.identity = signer.agent
        self._url, self._login = url, login
        self.signer: Signer = signer
        self._client: Client | None = None
        self._lock = asyncio.Lock()
        self._lost: asyncio.Future[Any] | None = None  # why the connection is no good any more
        self._ahead = 0.0  # seconds of the broker's clock before this one

    async def _connected(self) -> Client:
        async with self._lock:
            if self._client is None or self._client.is_closed:
                token = token_of(self.signer.agent)
                options: dict[str, Any] = {"nkeys_seed_str": self._login} if self._login else {}
                connecting = nats.connect(
                    self._url,
                    inbox_prefix=f"_INBOX.{token}".encode(),
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=0.5,
                    error_cb=self._failed,
                    disconnected_cb=self._disconnected,
                    **options,
                )
                try:
                    self._client = await self._unless_lost(asyncio.wait_for(connecting, _CONNECTS))
                except (nats.errors.Error, OSError, asyncio.TimeoutError) as error:
                    raise NoAnswer(f"no connection to NATS: {type(error).__name__}") from None
            return self._client

    async def _request(self, subject: str, data: bytes, timeout: float) -> Any:
        client = await self._connected()
        asked = client.request(f"asp.agent.{token_of(self.signer.agent)}.{subject}", data, timeout=timeout)
        try:
            reply = await self._unless_lost(asked)
        except (nats.errors.Error, asyncio.TimeoutError) as error:
            raise NoAnswer(f"{subject}: {type(error).__name__}") from None
        answer = loads(reply.data)
        if "error" in answer:
            raise refusal(answer["error"])
        return answer

    async def _unless_lost(self, asked: Coroutine[Any, Any, R]) -> R:
        """What was asked, or why the connection ends before it is there: nobody answers it then."""
        if self._lost is None or self._lost.done():
            self._lost = asyncio.get_running_loop().create_future()
        lost, answer = self._lost, asyncio.ensure_future(asked)
        try:
            await asyncio.wait([answer, lost], return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise lost.result()
            return answer.result()
        finally:
            answer.cancel()

    async def _disconnected(self) -> None:
        self._lose(NoAnswer("the connection to NATS broke"))

    async def _failed(self, error: Exception) -> None:
        """Reconnecting is the client's business; but no login gets better with time."""
        if re.search("(authorization|permissions) violation", str(error), re.IGNORECASE):
            self._lose(Unauthorized(f"the login is not one of {self.signer.agent}"))

    def _lose(self, why: ParleyError) -> None:
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(why)

    async def call(self, verb: str, request: JSON) -> Any:
        return await self._request(f"api.{verb}", dumps(request), float(request.get("seconds", 0)) + _WAITS)

    async def say(self, session: str, act: JSON, head: JSON | None, message_id: str) -> JSON:
        envelope = self.signer.envelope(session, act, head, message_id, time.time() + self._ahead)
        try:
            answer: JSON = await self._request(f"submit.{session}", envelope, _TIMEOUT)
        except StaleTimestamp as error:
            self._ahead = ahead_of(error)
            raise
        return answer

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
