"""Faults between the broker of the test kit and an agent: a proxy that breaks connections, and repeats what it carries.

It runs in a thread of its own, so it serves agents of any program.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit

R = TypeVar("R")
Part = tuple[bytes, bytes]  # a head, with its body
Read = Callable[[asyncio.StreamReader], Awaitable[Part]]

_SIZE = re.compile(rb"(?i)(\r\ncontent-length: *|^H?(?:PUB|MSG) .* )(\d+)(?=\r\n)")
_ACT = re.compile(rb"POST \S+/sessions/\S+/messages |PUB asp\.agent\.\S+\.submit\.")
_WAIT = re.compile(rb"POST \S+/turns/wait |PUB asp\.agent\.\S+\.api\.turn\.wait ")
_CALL = re.compile(rb"(?i)\r\nwebhook-id: ")
_WHO = re.compile(rb"(?i)(?<=\r\nauthorization: )[^\r]+|(?<=^PUB )\S+")
_ID = re.compile(rb'"messageId": *"[^"]+"')


class Faults:
    """What goes wrong between a broker and the agents that reach it by ``url`` or ``nats_url``.

    Attributes:
        happened: the faults so far, such as ``drop_answers``, in their order.
    """

    def __init__(self, http: int, nats: int, restart: Callable[[], None]) -> None:
        self.happened: list[str] = []
        self._restart = restart
        self._drops, self._redeliveries = 0, 0
        self._dropped: set[bytes] = set()  # acts
        self._asked: dict[bytes, bytes] = {}  # by agent: what it asked last when it waited for news
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._links: set[asyncio.Task[Any] | None] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="parley faults", daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._listen(_request, _chunk, '127.0.0.1', http)}"
        self.nats_url = f"nats://127.0.0.1:{self._listen(_line, _line, '127.0.0.1', nats)}"

    def drop_answers(self, times: int = 1) -> None:
        """Of the next acts, the broker enters each, and the connection breaks before its answer. The same act again is answered."""
        self._drops = times

    def redeliver(self, times: int = 1) -> None:
        """The next news, or calls to a URL of ``in_front_of``, come twice."""
        self._redeliveries = times

    def kill(self) -> None:
        """End the broker as a power failure does, and start it on the same data."""
        self._restart()
        self.happened.append("kill")

    def in_front_of(self, url: str) -> str:
        """A URL for ``wakeup.set``, which leads to the agent's own."""
        to = urlsplit(url)
        port = self._listen(_request, _chunk, str(to.hostname), to.port or 80)
        return to._replace(netloc=f"127.0.0.1:{port}").geturl()

    def close(self) -> None:
        """Break all connections, and listen no more."""

        async def ended() -> None:
            for server in self._servers:
                server.close()
            links = [link for link in self._links if link is not None]
            for link in links:
                link.cancel()
            await asyncio.gather(*links, return_exceptions=True)

        self._do(ended())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, what: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    def _listen(self, asked: Read, answered: Read, host: str, port: int) -> int:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            self._links.add(task)
            try:
                await _Link(self, host, port).carry(reader, writer, asked, answered)
            finally:
                self._links.discard(task)

        server = self._do(asyncio.start_server(accept, "127.0.0.1", 0))
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def drops(self, act: bytes) -> bool:
        """Whether the answer to this act is to be dropped."""
        found = _ID.search(act)
        which = found[0] if found else act
        if self._drops == 0 or which in self._dropped:
            return False
        self._drops -= 1
        self._dropped.add(which)
        return True

    def redelivers(self) -> bool:
        """Whether what comes now is to come twice."""
        if self._redeliveries == 0:
            return False
        self._redeliveries -= 1
        self.happened.append("redeliver")
        return True

    def asks(self, who: bytes, body: bytes) -> bytes:
        """What an agent that waits for news asks: again what it asked last, if the news of then are to come again."""
        before, self._asked[who] = self._asked.get(who, body), body
        return before if before != body and b'"since"' in before and self.redelivers() else body


class _Link:
    """One connection, and the one behind it."""

    def __init__(self, faults: Faults, host: str, port: int) -> None:
        self._faults, self._to = faults, (host, port)
        self._cut: bytes | None = None  # what begins the answer before which the connection breaks

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: Read, answered: Read) -> None:
        try:
            behind, to = await asyncio.open_connection(*self._to)
        except OSError:
            writer.close()
            return
        ways = [asyncio.ensure_future(self._ask(asked, reader, to)), asyncio.ensure_future(self._answer(answered, behind, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            writer.close()
            to.close()

    async def _ask(self, read: Read, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head, body = await read(reader)
            if _ACT.match(head) and self._faults.drops(body):
                self._cut = head.split()[2]  # HTTP/1.1, or the subject of the reply
            elif _WAIT.match(head) and (who := _WHO.search(head)):
                body = self._faults.asks(who[0], body)
                head = _SIZE.sub(rb"\g<1>%d" % len(body.rstrip(b"\r\n")), head)
            elif _CALL.search(head) and self._faults.redelivers():
                await self._once(head + body)
            writer.write(head + body)
            await writer.drain()

    async def _answer(self, read: Read, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head, body = await read(reader)
            if self._cut in head.split(maxsplit=2)[:2]:
                self._faults.happened.append("drop_answers")
                return
            writer.write(head + body)
            await writer.drain()

    async def _once(self, call: bytes) -> None:
        """Make a call, and wait for its answer."""
        reader, writer = await asyncio.open_connection(*self._to)
        writer.write(call)
        await reader.read(1)
        writer.close()


async def _request(reader: asyncio.StreamReader) -> Part:
    head = await reader.readuntil(b"\r\n\r\n")
    size = _SIZE.search(head)
    return head, await reader.readexactly(int(size[2]) if size else 0)


async def _line(reader: asyncio.StreamReader) -> Part:
    head = await reader.readuntil(b"\r\n")
    size = _SIZE.search(head)
    return head, await reader.readexactly(int(size[2]) + 2 if size else 0)


async def _chunk(reader: asyncio.StreamReader) -> Part:
    chunk = await reader.read(65536)
    if not chunk:
        raise EOFError
    return chunk, b""


__all__ = ["Faults"]
