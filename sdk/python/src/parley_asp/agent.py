"""An agent: handlers that decide, and the loop that keeps their decisions right under failure.

A handler is a reducer: one deal in, at most one act out. The act is tied to the head of the
transcript that it was decided on; if the session has gone on meanwhile, the handler decides again.

What takes long to import, such as httpx and pydantic, is imported by what uses it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

from ._binding import bound
from ._json import JSON
from ._moves import act_of, checked, committed_before
from ._seal import id_of, sealed
from ._sign import Signer
from ._transport import FIRST_PAUSE, OVER_HTTP, OVER_NATS, TraceParent, Transport, patiently, trace_of, url_of, uuid7_of
from .acts import Act, Decision, Delegate, Escalate, Propose, Wait, Withdraw
from .deal import Deal, Delegation
from .errors import (
    LASTING,
    OF_PROGRAM,
    AuthorityExceeded,
    ChainConflict,
    Duplicate,
    LoopError,
    NoAnswer,
    NotAllowed,
    ParleyError,
    Refusal,
    StaleTimestamp,
    TenderError,
    UnknownSession,
    WrongState,
    passes,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T", bound="BaseModel")
R = TypeVar("R")
Handler = Callable[[Deal[T]], "Decision | Awaitable[Decision]"]
OnRefused = Callable[[Deal[T], Act, Refusal], Any]
OnError = Callable[[Deal[T] | None, BaseException], Any]

NO_HASH = "sha256:" + "0" * 64  # the head of a session that has no entry

_TAKEN = "somebody else has opened a session with the id of this negotiation, or it is no longer kept: give it another key"

log = logging.getLogger("parley_asp")

WAIT_SECONDS = 50  # of turn.wait, the most
MOST_IN_A_ROW = 16  # acts without an entry of somebody else
MOST_AT_ONCE = 64  # sessions that handlers work on
QUICK = 30.0  # seconds after which a call that nobody repeats gives up
TELL_SECONDS = 2.0  # that a wake-up call waits for on_error
LIST_LIMIT = 200
SOON = 1.0  # seconds that the broker has to answer negotiate, however short its timeout
QUIET = 2.0  # seconds without an entry, after which negotiate asks for the end of the session
END_SECONDS = 10.0  # that it waits for one at a time
MOST_ENDS = 16  # sessions whose ends are waited for at once


@dataclass
class _Work(Generic[T]):
    """A session that the agent works on."""

    entries: list[JSON] = field(default_factory=list)
    latest: JSON | None = None
    woken: bool = True
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    last: Deal[T] | None = None
    finals: list[asyncio.Future[Deal[T]]] = field(default_factory=list)
    first: Propose | None = None  # the first offer, of who opened the session
    refused: tuple[str, str] | None = None  # head and act id that were refused
    trace: str | None = None  # in which the program opened it, or had it reduced
    gone: Refusal | None = None  # why the agent may not read it, or no more


class Agent(Generic[T]):
    """An agent, over HTTP with a token, or over NATS or HTTP with its own key.

    Args:
        url: of the broker: ``http://…`` or ``nats://…``. While the broker does not answer, the agent warns once and asks again.
        token: a token of the agent's (``parley token add URI``); under ``--dev`` its URI.
        agent: the agent's URI. It is needed with a key of its own.
        seed: of the signing key (``SU…``); without one the agent is hosted.
        login: seed of the login key, for NATS.
        terms: the author's pydantic model of terms. A ``float`` field is refused: use Decimal.
        schema: the name under which the first invitation publishes the model as a terms schema, such as ``acme-cups-v1``. A name
            is of one schema for ever, so a changed model needs another. The broker then checks the terms of offers that name it.
        floats: allow ``float`` fields, and floats in terms that are a mapping.
        traceparent: returns the ``traceparent`` (W3C Trace Context) of the trace that acts and calls join, or None. It is asked in
            the caller's context, and what handlers say in a session joins the trace in which you opened it, or had it reduced.
    """

    def __init__(
        self,
        *,
        url: str | None = "http://127.0.0.1:8080",
        token: str = "",
        agent: str | None = None,
        seed: str | None = None,
        login: str | None = None,
        terms: type[T] | None = None,
        schema: str | None = None,
        floats: bool = False,
        traceparent: TraceParent | None = None,
    ) -> None:
        if terms is not None and not floats:
            _no_floats(terms)
        if schema is not None and terms is None:
            raise TypeError("schema names what terms publishes: Agent(terms=…, schema=…)")
        self.terms = terms
        self.schema = schema
        self._floats = floats
        self._traceparent = traceparent
        self._published = False
        self._publishing = asyncio.Lock()
        self._transport = _transport(url, token, agent, seed, login)
        self._handlers: dict[str, Handler[T]] = {}
        self._on_refused: OnRefused[T] | None = None
        self._on_error: OnError[T] | None = None
        self._work: dict[str, _Work[T]] = {}
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)
        self._ends = asyncio.Semaphore(MOST_ENDS)
        self._loop: asyncio.Task[None] | None = None
        self._warned = False
        self._away = False  # the broker did not answer last
        self._closed = False

    @classmethod
    def from_env(
        cls,
        *,
        terms: type[T] | None = None,
        schema: str | None = None,
        floats: bool = False,
        traceparent: TraceParent | None = None,
    ) -> Agent[T]:
        """Read ``PARLEY_URL``, ``PARLEY_TOKEN``, ``PARLEY_AGENT``, ``PARLEY_SEED`` and ``PARLEY_LOGIN``."""
        return cls(**options_from_env(), terms=terms, schema=schema, floats=floats, traceparent=traceparent)

    # --- handlers

    def on_turn(self, handler: Handler[T]) -> Handler[T]:
        """Decide when the session waits for you, your offer lapsed, or something is agreed and you may close, commit or accept."""
        return self._on("turn", handler)

    def on_invitation(self, handler: Handler[T]) -> Handler[T]:
        """Answer an invitation. Without this handler invitations are left alone."""
        return self._on("invitation", handler)

    def on_check(self, handler: Handler[T]) -> Handler[T]:
        """Answer what others delegate to you: ``deal.check`` says what."""
        return self._on("check", handler)

    def _on(self, kind: str, handler: Handler[T]) -> Handler[T]:
        self._handlers[kind] = handler
        return handler

    def on_refused(self, handler: OnRefused[T]) -> OnRefused[T]:
        """Hear of a refusal that deciding again does not mend. The session rests until there is news."""
        self._on_refused = handler
        return handler

    def on_error(self, handler: OnError[T]) -> OnError[T]:
        """Hear of what a handler raised, or of a decision that is not allowed. The session rests until there is news."""
        self._on_error = handler
        return handler

    # --- what a program calls

    async def __aenter__(self) -> Agent[T]:
        self._loop = asyncio.create_task(self._listen(), name="parley")
        SERVING.add(self)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop. What a handler decides from now on is not said; the next start decides it again."""
        SERVING.discard(self)
        self._closed = True
        tasks = [t for t in [self._loop, *(w.task for w in self._work.values())] if t is not None]
        for w in self._work.values():
            if w.timer is not None:
                w.timer.cancel()
        for t in tasks:
            t.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for w in self._work.values():
            _end(w, ParleyError("the agent was closed"))
        await self._transport.close()

    async def run(self) -> None:
        """Serve all sessions until cancelled.

        Raises:
            Refusal: the broker refuses the agent from the beginning, such as ``Unauthorized`` for a wrong token.
        """
        if self._loop is not None:
            await asyncio.shield(self._loop)
            return
        async with self:
            assert self._loop is not None
            await asyncio.shield(self._loop)

    async def negotiate(
        self,
        with_: str,
        subject: str,
        first: T | Mapping[str, Any] | Propose | None = None,
        *,
        mode: str = "asp/1",
        key: str = "",
        timeout: float | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> Deal[T]:
        """Invite an agent, make the first offer, and let ``on_turn`` decide until the session is over.

        The same counterparty, subject and mode are the same session, also after a crash, and after it has ended: another
        ``key`` begins a new one. So does another token, unless ``Agent(agent=…)`` is given.

        Args:
            first: terms of the first offer, or the whole act; None waits for the other side's.
            mode: of the session (PROTOCOL.md section 8).
            timeout: seconds; then the deal is returned as it is, and goes on in the background. The broker has at least a second
                to answer.

        Returns:
            The deal as it was last.

        Raises:
            TermsError: the terms cannot be said exactly. Nothing was sent.
            Refusal: the invitation is refused.
            Duplicate: the name of the schema is taken by another one.
            NoAnswer: the broker has not answered within the timeout. The same call again is safe.
        """
        if self._loop is None:
            raise ParleyError("use it inside `async with agent:`")
        ends_at = None if timeout is None else time.monotonic() + timeout
        offer = self._offer(first, subject)
        session = self._session(with_, subject, mode, key)
        work = self._work.setdefault(session, _Work())
        final: asyncio.Future[Deal[T]] = asyncio.get_running_loop().create_future()
        work.finals.append(final)
        ends = asyncio.create_task(self._wait_for_end(session, work))
        try:
            within = _left(ends_at, SOON)
            await asyncio.wait_for(self._open(with_, subject, offer, mode, key, policy, within), within)
            self._wake(session)
            with suppress(TimeoutError, asyncio.TimeoutError):
                return await asyncio.wait_for(asyncio.shield(final), _left(ends_at, 0))
            return work.last if work.last is not None else await asyncio.wait_for(self.deal(session), SOON)
        except (TimeoutError, asyncio.TimeoutError):
            if ends_at is None:
                raise
            raise NoAnswer(f"the broker has not answered within {timeout} s: the same call again is safe") from None
        finally:
            ends.cancel()
            if final in work.finals:
                work.finals.remove(final)
            self._let_go(session, work)

    async def open(
        self,
        with_: str,
        subject: str,
        first: T | Mapping[str, Any] | Propose | None = None,
        *,
        mode: str = "asp/1",
        key: str = "",
        policy: Mapping[str, Any] | None = None,
    ) -> str:
        """Invite an agent, and return the session; ``reduce`` makes the first offer, once this process has called ``open``.

        Again it is the same session, so call it again in another process, such as after a restart.
        """
        return await self._open(with_, subject, self._offer(first, subject), mode, key, policy, None)

    async def _open(
        self, with_: str, subject: str, offer: Propose | None, mode: str, key: str, policy: Mapping[str, Any] | None, give_up: float | None
    ) -> str:
        session = self._session(with_, subject, mode, key)
        work = self._work.setdefault(session, _Work())
        work.trace = trace_of(self._traceparent) or work.trace
        work.first = offer
        await self._invite(session, with_, subject, mode, policy, give_up)
        return session

    def _offer(self, first: T | Mapping[str, Any] | Propose | None, subject: str) -> Propose | None:
        if first is None:
            return None
        return checked(first if isinstance(first, Propose) else Propose(first, subject=subject), self._floats)

    def _session(self, with_: str, subject: str, mode: str, key: str) -> str:
        return uuid7_of(self._transport.identity, with_, subject, mode, key)

    async def tender(
        self, agents: Sequence[str], subject: str, first: T | Mapping[str, Any] | Propose | None = None, **options: Any
    ) -> list[Deal[T]]:
        """Negotiate with several agents at once, each in a session of its own; ``options`` are those of negotiate.

        Raises:
            TenderError: some failed, such as to be invited. It has the deals with the others, and comes once all of them have ended. Where
                all failed, their first error is raised.
        """
        results = await asyncio.gather(*(self.negotiate(a, subject, first, **options) for a in agents), return_exceptions=True)
        deals = [r for r in results if not isinstance(r, BaseException)]
        failed = {a: r for a, r in zip(agents, results, strict=True) if isinstance(r, BaseException)}
        for error in failed.values():
            if not deals or not isinstance(error, Exception):
                raise error
        if failed:
            raise TenderError(deals, failed)
        return deals

    async def find(self, query: str = "", *, capability: str = "", organization: str = "", limit: int = 20) -> list[JSON]:
        """Cards of agents by words, capability or organisation."""
        asked = {"query": query, "capability": capability, "organization": organization, "limit": limit}
        found = await self.call("agent.search", {name: value for name, value in asked.items() if value})
        return list(found["agents"])

    async def deal(self, session: str) -> Deal[T]:
        """A session as it is now."""
        work = self._work.get(session) or _Work()
        work.latest = None  # news that a handler has yet to see, and that may be old
        return await self._look(session, work)

    async def call(self, verb: str, request: JSON) -> Any:
        """Call a verb of the api, again for at most 30 seconds if it is not answered."""
        trace = trace_of(self._traceparent)
        return await patiently(lambda: self._answered(self._transport.call(verb, request, trace)), QUICK)

    async def say(self, deal: Deal[T], decision: Act) -> Deal[T]:
        """Say one act on a deal, outside a handler, and return the deal after it, as far as you may still read it.

        Raises:
            TermsError: its terms cannot be said exactly. Nothing was sent.
            ChainConflict: the session went on since; decide again on a new deal.
            Refusal: any other refusal.
        """
        act = act_of(checked(decision, self._floats), deal)
        if isinstance(decision, Escalate) and act["body"].get("referenceId"):
            self._asked_before(deal, act["body"]["referenceId"])
        await self._say(deal, act, trace_of(self._traceparent))
        if self._loop is not None and deal.id in self._work:
            self._wake(deal.id)  # what the agent says itself is no news
        try:
            return await self.deal(deal.id)
        except (UnknownSession, AuthorityExceeded):  # such as after a delegation was declined, or given back
            return deal

    async def reduce(self, session: str) -> Deal[T]:
        """Decide in one session until there is nothing to do, and return it: for cron, queues, serverless."""
        work = self._work.setdefault(session, _Work())
        work.trace = trace_of(self._traceparent) or work.trace
        try:
            await self._reduce(session, work)
        except Refusal as refused:
            if refused is work.gone:
                _end(work, refused)
            raise
        finally:
            self._let_go(session, work)
        assert work.last is not None
        return work.last

    async def _reduce_called(self, session: str) -> bool:
        """Reduce the session of a wake-up call, and report whether the call is done. If not, it should come again."""
        work = self._work.setdefault(session, _Work())
        try:
            await self.reduce(session)
        except ParleyError as error:
            if passes(error):
                return False
            if error is work.gone:
                return True
            if told := self._failed(work.last, error):
                await asyncio.wait([told], timeout=TELL_SECONDS)
            return isinstance(error, LASTING)
        return True

    # --- the loop

    async def _listen(self) -> None:
        """Wake each session that has news; all open ones at the start, and after the broker was away."""
        cursor: str | None = None
        swept = False
        while True:
            try:
                if cursor is None:  # before the sweep, so that nothing comes between the two
                    cursor = await self._news(None, 0)
                if not swept:
                    await self._sweep()
                    swept = True
                cursor = await self._news(cursor, WAIT_SECONDS)
            except Exception as error:
                swept = False
                if not passes(error):
                    self._failed(None, error)
                    if cursor is None:  # such as a wrong token: it was never right
                        raise
                await asyncio.sleep((error.retry_after if isinstance(error, Refusal) else None) or 1)

    async def _news(self, since: str | None, seconds: float) -> str:
        """Wake the session of the next news, if there are any within some seconds; returns the cursor after them."""
        answer = await self._answered(self._transport.call("turn.wait", {"seconds": seconds, **({"since": since} if since else {})}))
        if snapshot := answer.get("snapshot"):
            self._wake(snapshot["sessionId"], snapshot)
        return str(answer["cursor"])

    async def _wait_for_end(self, session: str, work: _Work[T]) -> None:
        """Wake a session once it is over. Waits leave out what the agent says itself, so they do not tell of an end by another worker."""
        while True:
            seen = work.last
            await asyncio.sleep(QUIET)
            if seen is None or work.last is None or seen.head != work.last.head:
                continue
            with suppress(ParleyError):
                async with self._ends:
                    since = str(seen.view["head"]["n"] + 1)
                    try:
                        answer = await self._ask("turn.wait", {"sessionId": session, "since": since, "seconds": END_SECONDS})
                    except (UnknownSession, AuthorityExceeded):
                        self._wake(session)
                        continue
                if (snapshot := answer.get("snapshot")) and snapshot["state"] in ("CLOSED", "FAILED"):
                    self._wake(session, snapshot)

    async def _sweep(self) -> None:
        asked: JSON = {"limit": LIST_LIMIT}
        while True:
            page = await self._answered(self._transport.call("session.list", asked))
            for row in page["sessions"]:
                if row["state"] not in ("CLOSED", "FAILED") or row["sessionId"] in self._work:
                    self._wake(row["sessionId"])
            if not page.get("next") or all(row["state"] in ("CLOSED", "FAILED") for row in page["sessions"]):
                return
            asked["cursor"] = page["next"]

    def _wake(self, session: str, snapshot: JSON | None = None) -> None:
        work = self._work.setdefault(session, _Work())
        work.woken = True
        if snapshot is not None:
            work.latest = snapshot
        if work.task is None or work.task.done():
            work.task = asyncio.create_task(self._serve(session, work), name=f"parley {session}")

    def look_again(self) -> None:
        """Look at all sessions again, from any thread, such as after a test has moved the broker's clock."""
        if self._loop is not None:
            for session in list(self._work):
                self._loop.get_loop().call_soon_threadsafe(self._wake, session)

    async def _serve(self, session: str, work: _Work[T]) -> None:
        """Reduce a session as often as it is woken. Nothing that happens in it ends the agent."""
        while work.woken:
            work.woken = False
            try:
                async with self._slots:
                    await self._reduce(session, work)
            except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
                raise
            except NoAnswer:
                work.woken = True
                await asyncio.sleep(FIRST_PAUSE)
                with suppress(Refusal):  # if it lasts, the session has it, too
                    await self._ask("session.list", {"limit": 1})
            except Exception as error:
                if error is work.gone:  # such as when a delegation ends
                    _end(work, error)
                    self._work.pop(session, None)
                    if work.woken:  # such as by another delegation
                        self._wake(session)
                    return
                self._failed(work.last, error)
        work.task = None
        self._let_go(session, work)

    def _let_go(self, session: str, work: _Work[T]) -> None:
        """Forget a session that is over, or may not be read, if nobody works on it."""
        ended = work.gone is not None or (work.last is not None and work.last.over)
        if ended and not work.finals and work.task is None and self._work.get(session) is work:
            del self._work[session]

    async def _reduce(self, session: str, work: _Work[T]) -> None:
        """Decide and say, until the handlers have nothing to say about the newest entry."""
        said = 0
        next_: Act | None = None  # what was decided, and waits for another act of the agent's own
        deal = await self._look(session, work)
        while True:
            work.last = deal
            if work.timer is not None:
                work.timer.cancel()
            if deal.over:
                for final in work.finals:
                    if not final.done():
                        final.set_result(deal)
                return
            decision = next_ or await self._decide(deal, work)
            if decision is None or isinstance(decision, Wait):
                self._rest(session, work, deal, decision.seconds if decision else None)
                return
            decided, decision = decision, _takes_back(decision, deal)
            next_ = decided if decided is not decision else None
            if committed_before(checked(decision, self._floats), deal):
                self._rest(session, work, deal, None)
                return
            act = act_of(decision, deal)
            if isinstance(decision, Escalate) and act["body"].get("referenceId"):
                self._asked_before(deal, act["body"]["referenceId"])
            before = len(work.entries)
            if said >= MOST_IN_A_ROW:
                raise LoopError(f"{said} acts in a row, the last {act['performative']}: nobody else has said anything")
            try:
                await self._say(deal, act)
                said += 1
            except ChainConflict as conflict:
                if isinstance(conflict.details, dict) and isinstance(conflict.details.get("snapshot"), dict):
                    work.latest = conflict.details["snapshot"]
                said, next_ = 0, None
            except Refusal as refused:
                if refused.code == "unknown_session":
                    work.gone = refused
                if refused is work.gone or isinstance(refused, OF_PROGRAM):
                    raise
                work.latest = None  # what came while the handler ran is older than the refusal
                now = await self._look(session, work)
                if (now.head, now.moves) != (deal.head, deal.moves):  # such as when the offer has expired: decide again
                    deal, said, next_ = now, said + 1, None
                    continue
                await _called(self._on_refused, deal, decision, refused) if self._on_refused else log.warning(
                    "%s in %s is refused: %s", act["performative"], session, refused
                )
                return
            deal = await self._look_past(session, work, deal.head)
            if any(e["sender"]["agentId"] != deal.me for e in work.entries[before:]):
                said, next_ = 0, None

    async def _look(self, session: str, work: _Work[T]) -> Deal[T]:
        """The newest snapshot, with all entries that the caller may read."""
        work.gone = None
        try:
            return await self._seen(session, work)
        except (UnknownSession, AuthorityExceeded) as error:
            work.gone = error
            raise

    async def _seen(self, session: str, work: _Work[T]) -> Deal[T]:
        snapshot, work.latest = work.latest, None
        if snapshot is not None:
            _take(work.entries, snapshot)
        while snapshot is None or snapshot["head"]["n"] + 1 != len(work.entries):
            snapshot = await self._ask("session.snapshot", {"sessionId": session, "since": len(work.entries)})
            if not _take(work.entries, snapshot):
                break  # it has all, or may not read more
        check = None
        if any(i["kind"] in ("delegation", "check") and snapshot["you"].get("agentId") in i["for"] for i in snapshot["open"]):
            check = await self._check(session, str(snapshot["you"].get("agentId")))
        return Deal(snapshot, tuple(work.entries), self.terms, check, self.schema)

    async def _look_past(self, session: str, work: _Work[T], head: str) -> Deal[T]:
        """The newest snapshot, once the session has gone on from a head: it may be older than what was said already."""
        while True:
            deal = await self._look(session, work)
            if deal.head != head:
                return deal
            await asyncio.sleep(FIRST_PAUSE)

    async def _ask(self, verb: str, request: JSON) -> Any:
        """Call a verb until it is answered."""
        trace = self._trace(request["sessionId"]) if "sessionId" in request and verb != "turn.wait" else None
        return await patiently(lambda: self._answered(self._transport.call(verb, request, trace)))

    async def _answered(self, asked: Awaitable[R]) -> R:
        """What the broker answers. It says once that there is no answer, and once that there is one again."""
        try:
            answer = await asked
        except Exception as error:
            if self._closed:
                raise ParleyError("the agent was closed") from None
            if isinstance(error, NoAnswer):
                if not self._away:
                    log.warning("the broker does not answer, and is asked again (PARLEY_URL or url= names it): %s", error)
                self._away = True
            elif isinstance(error, Refusal):
                self._answers()
            raise
        self._answers()
        return answer

    def _answers(self) -> None:
        if self._away:
            log.warning("the broker answers again")  # as loud as what it ends
        self._away = False

    def _trace(self, session: str) -> str | None:
        """The trace of what a session makes the agent ask and say."""
        work = self._work.get(session)
        return work.trace if work is not None and work.trace else trace_of(self._traceparent)

    async def _check(self, session: str, me: str) -> Delegation:
        c = await self._ask("check.get", {"sessionId": session})
        return Delegation(me, c["delegationId"], c["from"], c["authority"], c.get("scope", ""), c.get("referenceId"), c["status"])

    async def _decide(self, deal: Deal[T], work: _Work[T]) -> Decision:
        if work.first is not None and not deal.view["offers"] and deal.role == "inviter" and deal.round == 0 and deal.allows("PROPOSE"):
            return work.first
        kind = _whose(deal)
        if kind is None:
            return None
        handler = self._handlers.get(kind)
        if handler is None:
            if kind == "invitation" and not self._warned:
                self._warned = True
                log.warning("an invitation waits, and there is no on_invitation: it is left alone")
            return None
        decision: Decision = await _called(handler, deal)
        if decision is not None and not isinstance(decision, get_args(Decision)):
            raise TypeError(f"on_{kind} returned {type(decision).__name__}, which is no decision")
        return decision

    def _asked_before(self, deal: Deal[T], offer: str) -> None:
        """Refuse to ask people twice about one offer, as a framework that runs a step again would."""
        about = next((o for o in deal.offers if o.id == offer), None)
        if about is not None and (found := deal.approval(about)).id:
            raise NotAllowed(f"your people were asked about {offer} before: {found.decision or 'they have not decided yet'}")

    async def _say(self, deal: Deal[T], act: JSON, trace: str | None = None) -> None:
        trace = trace or self._trace(deal.id)
        act = await bound(deal, act, self._transport.signer, self._ask)
        message_id = id_of(deal.id, deal.head, act)
        act = sealed(deal.id, act, message_id, self._transport.signer)
        if not await self._freshly(lambda: self._transport.say(deal.id, act, deal.view["head"], message_id, trace)):
            found: JSON = {"messages": ()}
            with suppress(UnknownSession, AuthorityExceeded):  # what may not be read is taken as said
                found = await self._ask("session.messages", {"sessionId": deal.id, "messageId": message_id})
            if any(e["sender"]["agentId"] != deal.me for e in found["messages"]):
                raise ChainConflict("somebody else has used its id: decide again")

    async def _freshly(self, say: Callable[[], Awaitable[JSON]], give_up: float | None = None) -> bool:
        """Say something patiently, and once more by the broker's clock if this one is off; False if its id was said before."""
        try:
            try:
                await patiently(lambda: self._answered(say()), give_up)
            except StaleTimestamp:
                await patiently(lambda: self._answered(say()), give_up)
        except Duplicate as duplicate:
            if duplicate.details is not None:  # something else has its id, or offers the same
                raise
            return False  # its answer was lost, another worker said it, or somebody else took its id
        return True

    async def _publish(self, name: str) -> None:
        """Register the model as a terms schema, once. The same again changes nothing, and another one is refused."""
        async with self._publishing:
            if not self._published:
                from ._schema import schema_of

                assert self.terms is not None
                await self.call("schema.put", {"name": name, "schema": schema_of(self.terms)})
                self._published = True

    async def _invite(
        self, session: str, with_: str, subject: str, mode: str, policy: Mapping[str, Any] | None, give_up: float | None = None
    ) -> None:
        terms: JSON = {"purpose": subject, "participants": [with_]}
        if mode != "asp/1":
            terms["mode"] = mode
        if policy:
            terms["policy"] = dict(policy)
        if self.schema is not None:
            await self._publish(self.schema)
            terms["schemas"] = [self.schema]
        body = {"proposalId": "invitation", "type": "session-invitation", "subject": subject, "terms": terms}
        act = {"performative": "PROPOSE", "body": body}
        message_id = uuid7_of(session, NO_HASH, "PROPOSE", body)
        try:
            if await self._freshly(lambda: self._transport.say(session, act, None, message_id, self._trace(session)), give_up):
                return
        except (ChainConflict, WrongState):
            pass
        except UnknownSession:
            raise ParleyError(_TAKEN) from None
        # It is there already, from before a crash, or by another worker, or somebody else.
        if (await self._ask("session.snapshot", {"sessionId": session}))["you"]["role"] != "inviter":
            raise ParleyError(_TAKEN)

    def _rest(self, session: str, work: _Work[T], deal: Deal[T], seconds: float | None) -> None:
        """Look again when an offer expires, or when the handler wants to."""
        now = time.time()
        times = [max(1.0, o.expires.timestamp() - now + 0.5) for o in deal.offers if o.open and o.expires is not None]  # clocks differ
        if seconds is not None:
            times.append(seconds)
        if times and self._loop is not None:
            work.timer = asyncio.get_running_loop().call_later(max(0.1, min(times)), self._wake, session)

    def _failed_in(self, session: str, error: BaseException) -> asyncio.Future[Any] | None:
        work = self._work.get(session)
        return self._failed(work.last if work is not None else None, error)

    def _failed(self, deal: Deal[T] | None, error: BaseException) -> asyncio.Future[Any] | None:
        """Tell on_error, or the log; what on_error waits for is returned."""
        if self._on_error is None:
            log.error("%s", f"in {deal.id}: {error}" if deal else error, exc_info=not isinstance(error, ParleyError))
            return None
        try:
            answer = self._on_error(deal, error)
            if inspect.isawaitable(answer):
                task = asyncio.ensure_future(answer)
                task.add_done_callback(lambda t: t.cancelled() or t.exception())
                return task
        except Exception:
            log.exception("on_error raised")
        return None


SERVING: weakref.WeakSet[Agent[Any]] = weakref.WeakSet()  # they look again when a test has moved the broker's clock


def _end(work: _Work[Any], error: Exception) -> None:
    """Tell who waits for a session that the agent has no part in it, or no more."""
    for final in work.finals:
        if not final.done():
            final.set_exception(error)


def _take(entries: list[JSON], snapshot: JSON) -> bool:
    """Add the news of a snapshot to the entries before it; reports whether there were any."""
    before = len(entries)
    for e in snapshot.get("news", ()):
        if e["sequenceNumber"] == len(entries):
            entries.append(e)
    return len(entries) > before


def _whose(deal: Deal[Any]) -> str | None:
    """Which handler decides: none while the session waits for somebody else."""
    if deal.state == "ESCALATED":
        return None
    if deal.invitation is not None:
        return "invitation"
    if deal.check is not None:
        return "check"
    if deal.yours or deal.lapsed or (deal.agreed is not None and any(deal.allows(act) for act in ("CLOSE", "COMMIT", "ACCEPT"))):
        return "turn"
    return None


def _left(ends_at: float | None, least: float) -> float | None:
    """Seconds until a time, and at least so many; None without one."""
    return None if ends_at is None else max(least, ends_at - time.monotonic())


def _takes_back(decision: Act, deal: Deal[Any]) -> Act:
    """A WITHDRAW of the delegation about another offer, which comes before a DELEGATE to the same agent."""
    if not isinstance(decision, Delegate):
        return decision
    standing = deal.delegation(decision.target)
    other = standing.about != decision.fills().get("referenceId")
    return Withdraw(standing.id) if standing and other and deal.allows("WITHDRAW", standing.id) else decision


def options_from_env() -> dict[str, Any]:
    """Options of an agent from ``PARLEY_…``."""
    named = {name: os.environ.get(f"PARLEY_{name.upper()}") for name in ("url", "token", "agent", "seed", "login")}
    return {name: value for name, value in named.items() if value}


async def _called(handler: Callable[..., Any], *args: Any) -> Any:
    answer = handler(*args)
    return await answer if inspect.isawaitable(answer) else answer


def _transport(url: str | None, token: str, agent: str | None, seed: str | None, login: str | None) -> Transport:
    url = url_of(url, OVER_HTTP + OVER_NATS)
    if seed and not agent:
        raise ParleyError("an agent with a key of its own needs its URI: Agent(agent=…), or PARLEY_AGENT")
    signer = Signer(agent, seed) if seed and agent else None
    if not url.lower().startswith("http"):
        if signer is None:
            raise ParleyError("over NATS an agent signs with its own key: Agent(seed=…), or PARLEY_SEED")
        from ._nats import NATS

        return NATS(url, signer, login)
    if not token:
        raise ParleyError("over HTTP an agent needs a token: Agent(token=…), or PARLEY_TOKEN")
    from ._http import HTTP

    return HTTP(url, token, signer, agent)


def _no_floats(model: type[BaseModel], seen: frozenset[type] = frozenset()) -> None:
    from pydantic import BaseModel

    for name, info in model.model_fields.items():
        for kind in _types(info.annotation):
            if kind is float:
                raise TypeError(f"{model.__name__}.{name} is a float, which cannot say most amounts: use Decimal, or Agent(floats=True)")
            if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in seen:
                _no_floats(kind, seen | {kind})


def _types(annotation: Any) -> list[Any]:
    inside = get_args(annotation)
    return [annotation] if not inside else [kind for one in inside for kind in _types(one)]
