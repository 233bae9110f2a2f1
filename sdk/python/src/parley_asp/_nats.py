"""The broker over NATS, with one's own key."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from typing import Any

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from ._json import JSON, encode, loads
from ._sign import Signer, ahead_of, token_of
from ._transport import shown
from .errors import NoAnswer, ParleyError, StaleTimestamp, Unauthorized, refusal

_CONNECTS = 5.0
_TIMEOUT = 20.0
_WAITS = 15.0  # seconds beyond what a verb waits by itself


class NATS:
    """A transport over NATS. It connects with the first call, and again for as long as it takes."""

    def __init__(self, url: str, signer: Signer, login: str | None) -> None:
        self.identity = signer.agent
        self._url, self._login = url, login
        self._token = token_of(signer.agent)
        self.signer: Signer = signer
        self._client: Client | None = None
        self._lock = asyncio.Lock()
        self._inbox = ""  # where answers come, with a number each
        self._numbers = itertools.count()
        self._asked: dict[str, asyncio.Future[Msg | ParleyError]] = {}  # by the subject of the answer
        self._lost: asyncio.Future[ParleyError] | None = None  # why a connection cannot be made
        self._ahead = 0.0  # seconds of the broker's clock before this one

    async def _connected(self) -> Client:
        if self._client is not None and not self._client.is_closed:
            return self._client
        async with self._lock:
            if self._client is None or self._client.is_closed:
                lost = self._lost = asyncio.get_running_loop().create_future()
                connecting = asyncio.ensure_future(self._connect())
                waits: list[asyncio.Future[Any]] = [connecting, lost]
                try:
                    await asyncio.wait(waits, timeout=_CONNECTS, return_when=asyncio.FIRST_COMPLETED)
                    if not connecting.done():
                        raise lost.result() if lost.done() else NoAnswer(f"no connection to {shown(self._url)}: TimeoutError")
                    self._client = connecting.result()
                except (nats.errors.Error, OSError) as error:
                    raise NoAnswer(f"no connection to {shown(self._url)}: {type(error).__name__}") from None
                finally:
                    connecting.cancel()
            return self._client

    async def _connect(self) -> Client:
        options: dict[str, Any] = {"nkeys_seed_str": self._login} if self._login else {}
        client = await nats.connect(
            self._url,
            inbox_prefix=f"_INBOX.{self._token}".encode(),
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.5,
            error_cb=self._failed,
            disconnected_cb=self._disconnected,
            **options,
        )
        self._inbox = client.new_inbox()
        await client.subscribe(f"{self._inbox}.*", cb=self._answered)
        return client

    async def _request(self, subject: str, data: bytes, timeout: float, trace: str | None) -> Any:
        client = await self._connected()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Msg | ParleyError] = loop.create_future()
        reply = f"{self._inbox}.{next(self._numbers)}"
        self._asked[reply] = answer
        timer = loop.call_later(timeout, _give, answer, NoAnswer(f"{subject}: TimeoutError"))
        try:
            headers = {"traceparent": trace} if trace is not None else None
            await client.publish(f"asp.agent.{self._token}.{subject}", data, reply=reply, headers=headers)
            came = await answer
        except nats.errors.Error as error:
            raise NoAnswer(f"{subject}: {type(error).__name__}") from None
        finally:
            timer.cancel()
            del self._asked[reply]
        if isinstance(came, ParleyError):
            raise came
        if not came.data:
            raise NoAnswer(f"{subject}: nobody is there to answer")
        said = loads(came.data)
        if "error" in said:
            raise refusal(said["error"])
        return said

    async def _answered(self, message: Msg) -> None:
        if answer := self._asked.get(message.subject):
            _give(answer, message)

    async def _disconnected(self) -> None:
        self._lose(NoAnswer("the connection to NATS broke"))

    async def _failed(self, error: Exception) -> None:
        """Reconnecting is the client's business; but no login gets better with time."""
        if re.search("(authorization|permissions) violation", str(error), re.IGNORECASE):
            self._lose(Unauthorized(f"the login is not one of {self.signer.agent}"))

    def _lose(self, why: ParleyError) -> None:
        """Give up what was asked, and the connection that is made: nobody answers it."""
        for answer in self._asked.values():
            _give(answer, why)
        if self._lost is not None:
            _give(self._lost, why)

    async def call(self, verb: str, request: JSON, trace: str | None = None) -> Any:
        return await self._request(f"api.{verb}", encode(request), float(request.get("seconds", 0)) + _WAITS, trace)

    async def say(self, session: str, act: JSON, head: JSON | None, message_id: str, trace: str | None = None) -> JSON:
        envelope = self.signer.envelope(session, act, head, message_id, time.time() + self._ahead)
        try:
            answer: JSON = await self._request(f"submit.{session}", envelope, _TIMEOUT, trace)
        except StaleTimestamp as error:
            self._ahead = ahead_of(error)
            raise
        return answer

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()


def _give(answer: asyncio.Future[Any], what: Any) -> None:
    if not answer.done():
        answer.set_result(what)
