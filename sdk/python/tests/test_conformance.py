"""The conversations of test/conformance, said by this SDK: what they say is accepted is, and the rest is refused with their codes."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections import Counter as Count
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from parley_asp import (
    Accept,
    Act,
    Agent,
    Clarify,
    Close,
    Commit,
    Counter,
    Deal,
    Delegate,
    Escalate,
    Inform,
    NotAllowed,
    Observe,
    Propose,
    Query,
    Refusal,
    Reject,
    Withdraw,
)
from parley_asp._http import HTTP
from parley_asp._json import JSON
from parley_asp._moves import act_of
from parley_asp._transport import uuid7_of
from parley_asp.errors import refusal
from parley_asp.testing import Broker

CONVERSATIONS = sorted((Path(__file__).parents[3] / "test/conformance/testdata").glob("*.txt"))
PRINCIPALS = {
    "alpha": "agent://acme.com/alpha", "beta": "agent://widgets.co/beta", "gamma": "agent://gizmo.io/gamma",
    "delta": "agent://acme.com/legal/delta", "epsilon": "agent://acme.com/epsilon", "outsider": "agent://nowhere.net/x",
    "alice": "human://acme.com/alice", "bob": "human://widgets.co/bob", "carol": "human://acme.com/carol",
}  # fmt: skip
READS = re.compile(r"(session|check|escalation|schema|agent|broker)\.(get|list|messages|snapshot|history|info|nonsense)$")


def act(performative: str, body: JSON) -> Act | None:
    """The value of the SDK for an act; None if it has none."""
    about: Any = body.get("referenceId")
    also = body
    match performative:
        case "PROPOSE":
            return Propose(body.get("terms", {}), also=also)
        case "ACCEPT":
            return Accept(about, also=also)
        case "REJECT":
            return Reject(about, also=also)
        case "COUNTER":
            return Counter(about, body.get("terms", {}), also=also)
        case "CLARIFY":
            return Clarify(about, (), also=also)
        case "COMMIT":
            return Commit(about, outcome=body.get("outcome"), also=also)
        case "DELEGATE":
            return Delegate(str(body.get("targetAgent")), about=about, also=also)
        case "WITHDRAW":
            return Withdraw(about, also=also)
        case "INFORM":
            return Inform(body.get("data"), to=about, also=also)
        case "QUERY":
            return Query(str(body.get("subject")), also=also)
        case "OBSERVE":
            return Observe(str(body.get("subject")), also=also)
        case "ESCALATE":
            return Escalate(about, also=also)
        case "CLOSE":
            return Close(also=also)
    return None


class LeftOut(Exception):
    """What this SDK cannot say, or what a broker of developers does not know."""


class Stage:
    """Plays conversations, one after the other."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.agents: dict[str, Agent[Any]] = {n: Agent(url=broker.url, token=uri) for n, uri in PRINCIPALS.items()}
        self.raw = {n: HTTP(broker.url, uri) for n, uri in PRINCIPALS.items()}
        self.played: Count[str] = Count()
        self.left: Count[str] = Count()
        self.wrong: list[str] = []
        self.barred = ""  # why the rest of the file cannot be played
        self.scene()

    def scene(self) -> None:
        self.names: dict[str, str] = {"session": uuid7_of(uuid.uuid4().hex)}
        self.acts = 0
        self.again: dict[str, tuple[str, Callable[[], Awaitable[Any]]]] = {}
        self.lost = self.barred  # why the rest of the conversation cannot be played

    def read(self, text: str) -> Any:
        def named(found: re.Match[str]) -> str:
            name = found[1]
            if name == "new":
                return uuid7_of(uuid.uuid4().hex)
            if name.startswith("soon:"):
                at = datetime.now(timezone.utc) + timedelta(milliseconds=int(name[5:]))
                return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            if name not in self.names:
                raise LeftOut(f"names ${{{re.sub('[0-9]+', 'N', name)}}}, which this SDK does not choose")
            return self.names[name]

        return json.loads(re.sub(r"\$\{([a-z0-9:]+)\}", named, text))

    async def play(self, text: str) -> None:
        """Play a file. Calls that read are left to the tests in Go; people need not register."""
        self.scene()
        lines = text.splitlines()
        for line, answer in zip(lines, [*lines[1:], ""], strict=True):
            word, _, rest = line.partition(" ")
            if word == "==":
                self.scene()
            elif word == "restart":
                await asyncio.to_thread(self.broker.restart)
            elif word == "event":
                self.lost = self.lost or "waits for a time to pass"
            elif word == "?":
                who, verb, *_ = rest.split()
                if not READS.match(verb) and not PRINCIPALS[who].startswith("human://"):
                    self.barred = self.lost = self.lost or f"follows {verb}, which this SDK has no name for"
            elif word == ">":
                self.acts += 1
                try:
                    if self.lost:
                        raise LeftOut(self.lost)
                    await self.say(line, answer)
                except LeftOut as why:
                    self.left[str(why)] += 1
                    if answer.startswith("< {") and '"duplicate":true' not in answer:
                        self.lost = self.lost or "follows an act that is left out"

    async def say(self, line: str, answer: str) -> None:
        who, performative, rest = line[2:].split(" ", 2)
        label = f"m{self.acts}"
        if performative == "again":
            self.acts -= 1
            if self.again.get(rest, ("",))[0] != who:
                raise LeftOut("says again what it did not say")
            how, do = "said again", self.again[rest][1]
        else:
            how, do = await self.prepared(who, performative, rest)
            self.again[label] = who, do
        expected = "" if answer.startswith("< {") else str(json.loads(answer.split(" ", 2)[2])["error"]["code"])
        try:
            await do()
            got: Refusal | None = None
        except Refusal as refused:
            got = refused
        if (got.code if got else "") != expected or (got and type(got) is not type(refusal({"code": expected}))):
            self.wrong.append(f"{line}\n  {answer}\n  here: {got or 'accepted'}")
        self.played[f"{how}, {'refused' if expected else 'accepted'}"] += 1
        if got is None:
            await self.learn(who, label)

    async def prepared(self, who: str, performative: str, rest: str) -> tuple[str, Callable[[], Awaitable[Any]]]:
        """How an act is said: by its value where the SDK has one, and as it is if that is none of the moves."""
        if " & " in rest:
            raise LeftOut("has sealed parts")
        body, _, over = rest.partition(" + ")
        members = self.read(over) if over else {}
        if set(members) - {"recipient"}:
            raise LeftOut("sets members of the envelope that this SDK sets itself")
        session, said = self.names["session"], self.read(body)
        draft = {"performative": performative, "body": said, **members}
        identity = uuid7_of(session, self.acts)
        value, deal = act(performative, said) if isinstance(said, dict) else None, await self.deal(who)
        if value is not None and deal is not None:
            if members:
                object.__setattr__(value, "recipient", members["recipient"])
            try:
                if {**act_of(value, deal), **members} == draft:
                    return "said by its value", lambda: self.agents[who].say(deal, value)
            except NotAllowed:
                return "none of the moves", lambda: self.raw[who].say(session, draft, None, identity)
        return "said as it is", lambda: self.raw[who].say(session, draft, None, identity)

    async def deal(self, who: str) -> Deal[Any] | None:
        try:
            return await self.agents[who].deal(self.names["session"])
        except Refusal:
            return None

    async def learn(self, who: str, label: str) -> None:
        deal = await self.deal(who)
        if deal is None:
            return
        for n, e in enumerate(deal.entries):
            self.names[f"hash{n}"] = e["integrity"]["hash"]
        self.names.setdefault(label, deal.entries[-1]["messageId"])

    async def close(self) -> None:
        for name, agent in self.agents.items():
            await agent.close()
            await self.raw[name].close()


def test_conversations(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> Stage:
        stage = Stage(broker)
        for file in CONVERSATIONS:
            stage.barred = "has rules for who decides, which a broker of developers has not" if file.with_suffix(".yaml").exists() else ""
            await stage.play(file.read_text())
        await stage.close()
        return stage

    stage = asyncio.run(asyncio.wait_for(main(), 120))
    with capsys.disabled():
        print(f"\n{stage.played.total()} acts of {len(CONVERSATIONS)} conversations were played, {stage.left.total()} left out")
        for what, n in [*stage.played.most_common(), *stage.left.most_common()]:
            print(f"{n:5} {what}")
    assert not stage.wrong, "\n".join(stage.wrong)
