"""The same agent for programs without asyncio: Django, cron, notebooks.

Handlers are plain functions and may block; each runs in a thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import agent as _async
from ._json import JSON
from ._transport import TraceParent
from .acts import Act, Propose
from .deal import Deal
from .errors import ParleyError

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T", bound="BaseModel")
R = TypeVar("R")


class Agent(Generic[T]):
    """An agent; options and methods are those of :class:`parley_asp.Agent`."""

    def __init__(self, **options: Any) -> None:
        self._agent: _async.Agent[T] = _async.Agent(**options)
        self._loop = asyncio.new_event_loop()
        self._lock, self._closed = threading.Lock(), False
        self._thread = threading.Thread(target=self._serve, name="parley", daemon=True)
        self._thread.start()

    @classmethod
    def from_env(
        cls,
        *,
        terms: type[T] | None = None,
        schema: str | None = None,
        floats: bool = False,
        traceparent: TraceParent | None = None,
    ) -> Agent[T]:
        """Read the environment, as :meth:`parley_asp.Agent.from_env` does."""
        return cls(**_async.options_from_env(), terms=terms, schema=schema, floats=floats, traceparent=traceparent)

    def _serve(self) -> None:
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):  # which other threads, such as a handler's, wait for
            task.cancel()
            self._loop.run_until_complete(asyncio.wait([task]))
        self._loop.close()

    def _do(self, coroutine: Coroutine[Any, Any, R]) -> R:
        with self._lock:
            if self._closed:
                coroutine.close()
                raise ParleyError("the agent was closed")
            asked = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return asked.result()
        except CancelledError:
            raise ParleyError("the agent was closed") from None
        except BaseException:  # such as KeyboardInterrupt
            asked.cancel()
            raise

    def on_turn(self, handler: Any) -> Any:
        """Decide when the session waits for you, your offer lapsed, or something is agreed."""
        return self._on("turn", handler)

    def on_invitation(self, handler: Any) -> Any:
        """Answer an invitation."""
        return self._on("invitation", handler)

    def on_check(self, handler: Any) -> Any:
        """Answer what others delegate to you."""
        return self._on("check", handler)

    def _on(self, kind: str, handler: Any) -> Any:
        async def called(*args: Any) -> Any:
            return await asyncio.to_thread(handler, *args)

        getattr(self._agent, f"on_{kind}")(called)
        return handler

    def on_refused(self, handler: Any) -> Any:
        """Hear of a refusal that deciding again does not mend."""
        return self._on("refused", handler)

    def on_error(self, handler: Any) -> Any:
        """Hear of what a handler raised, or of a decision that is not allowed."""
        return self._on("error", handler)

    def __enter__(self) -> Agent[T]:
        self._do(self._agent.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop, and end the thread. What other threads wait for raises a ParleyError."""
        if not self._closed:
            self._do(self._agent.close())
        with self._lock:
            if not self._closed:
                self._closed = True
                self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def run(self) -> None:
        """Serve all sessions until interrupted."""
        self._do(self._agent.run())

    def negotiate(self, with_: str, subject: str, first: T | Mapping[str, Any] | Propose | None = None, **options: Any) -> Deal[T]:
        """Invite an agent, make the first offer, and let ``on_turn`` decide until the session is over."""
        return self._do(self._agent.negotiate(with_, subject, first, **options))

    def open(self, with_: str, subject: str, first: T | Mapping[str, Any] | Propose | None = None, **options: Any) -> str:
        """Invite an agent, and return the session; ``reduce`` makes the first offer."""
        return self._do(self._agent.open(with_, subject, first, **options))

    def tender(
        self, agents: Sequence[str], subject: str, first: T | Mapping[str, Any] | Propose | None = None, **options: Any
    ) -> list[Deal[T]]:
        """Negotiate with several agents at once, each in a session of its own."""
        return self._do(self._agent.tender(agents, subject, first, **options))

    def find(self, query: str = "", **options: Any) -> list[JSON]:
        """Cards of agents by words, capability or organisation."""
        return self._do(self._agent.find(query, **options))

    def deal(self, session: str) -> Deal[T]:
        """A session as it is now."""
        return self._do(self._agent.deal(session))

    def say(self, deal: Deal[T], decision: Act) -> Deal[T]:
        """Say one act on a deal, outside a handler, and return the deal after it."""
        return self._do(self._agent.say(deal, decision))

    def reduce(self, session: str) -> Deal[T]:
        """Decide in one session until there is nothing to do, and return it."""
        return self._do(self._agent.reduce(session))

    def call(self, verb: str, request: JSON) -> Any:
        """Call a verb of the api."""
        return self._do(self._agent.call(verb, request))


__all__ = ["Agent"]
