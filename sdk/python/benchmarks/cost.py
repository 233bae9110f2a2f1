"""What the SDK costs beside nats-py by hand: a buyer in 128 sessions at once, over NATS with its own key.

python benchmarks/cost.py [--sessions 128] [--rounds 5]

Both buyers say the same six acts in each session; the seller is another process. What is counted is the CPU time of
this process; the buyers take turns, round by round, and of the rounds, and of the ratios in them, it prints the medians.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from datetime import datetime, timezone
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nats
import nats.errors
import nkeys
import rfc8785
from pydantic import BaseModel

from parley_asp import Accept, Agent, Close, Counter, Deal, Decision, Item
from parley_asp._sign import token_of
from parley_asp.testing import Broker

SELLER = "agent://widgets.co/seller"
MOST, LEAST, FIRST, LAST, ROUNDS = 100, 90, 60, 100, 4
ACTS = 6  # of the buyer in a session: it invites, offers, counters twice, accepts, closes


class Cups(BaseModel):
    price: Decimal
    currency: str = "EUR"


class SDK:
    """The buyer as a reducer."""

    def __init__(self, keys: dict[str, Any]) -> None:
        self._agent = Agent(**keys, terms=Cups)
        self._agent.on_turn(self._decide)

    def _decide(self, deal: Deal[Cups]) -> Decision:
        if deal.agreed:
            return Close.completed()
        offer = deal.their_offer
        if offer.terms.price > MOST:
            return Counter(offer, Cups(price=deal.step(FIRST, LAST, ROUNDS)))
        return Accept(offer)

    async def buy(self, sessions: int, key: str) -> None:
        async def one(n: int) -> None:
            deal = await self._agent.negotiate(SELLER, "cups", Cups(price=Decimal(FIRST)), key=f"{key} {n}")
            assert deal.outcome == "completed" and deal.agreed and deal.agreed.terms.price == LEAST, deal.view

        await asyncio.gather(*(one(n) for n in range(sessions)))

    async def __aenter__(self) -> SDK:
        await self._agent.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._agent.close()


def uuid7(*of: str) -> str:
    raw = bytearray(hashlib.sha256("\n".join(of).encode()).digest()[:16])
    raw[6], raw[8] = raw[6] & 0x0F | 0x70, raw[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(raw)))


class Raw:
    """The same buyer by hand: a pull consumer, signed envelopes, requests."""

    def __init__(self, keys: dict[str, str]) -> None:
        self._keys, self._token = keys, token_of(keys["agent"])
        self._key = nkeys.from_seed(bytearray(keys["seed"].encode()))
        self._rounds: dict[str, int] = {}  # offers made, of each session

    async def __aenter__(self) -> Raw:
        prefix = f"_INBOX.{self._token}".encode()
        self._client = await nats.connect(self._keys["url"], nkeys_seed_str=self._keys["login"], inbox_prefix=prefix)
        self._inbox = await self._client.jetstream().pull_subscribe_bind(consumer=self._token, stream="ASP_INBOX")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def buy(self, sessions: int, key: str) -> None:
        self._rounds.clear()
        await asyncio.gather(*(self._invite(uuid7(key, str(n))) for n in range(sessions)))
        closed = 0
        while closed < sessions:
            try:
                messages = await self._inbox.fetch(64, timeout=5)
            except nats.errors.TimeoutError:
                continue
            closed += sum(await asyncio.gather(*(self._handle(m) for m in messages)))

    async def _invite(self, session: str) -> None:
        self._rounds[session] = 0
        terms = {"purpose": "cups", "participants": [SELLER]}
        body = {"proposalId": "invitation", "type": "session-invitation", "subject": "cups", "terms": terms}
        await self._say(session, "PROPOSE", body, None)

    async def _handle(self, message: Any) -> bool:
        """Answer what the seller said; reports whether the session is closed with it."""
        entry = json.loads(message.data)
        session, body = entry["sessionId"], entry["content"]["body"]
        head = {"sequenceNumber": entry["sequenceNumber"], "hash": entry["integrity"]["hash"]}
        closed = False
        if entry["performative"] == "ACCEPT":
            await self._say(session, "PROPOSE", {"type": "service-agreement", "subject": "cups", **self._offer(session)}, head)
        elif body["terms"]["price"] > MOST:
            await self._say(session, "COUNTER", {"referenceId": body["proposalId"], **self._offer(session)}, head)
        else:
            head = await self._say(session, "ACCEPT", {"referenceId": body["proposalId"]}, head)
            await self._say(session, "CLOSE", {"outcome": "completed"}, head)
            closed = True
        await message.ack()
        return closed

    def _offer(self, session: str) -> dict[str, Any]:
        said = self._rounds[session]
        self._rounds[session] += 1
        price = FIRST + (LAST - FIRST) * said // ROUNDS
        return {"proposalId": f"offer-{said}", "terms": {"price": price, "currency": "EUR"}}

    async def _say(self, session: str, performative: str, body: dict[str, Any], head: dict[str, Any] | None) -> dict[str, Any]:
        envelope: dict[str, Any] = {
            "version": "asp/0.1",
            "messageId": uuid7(session, head["hash"] if head else "", performative),
            "sessionId": session,
            "timestamp": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "sender": {"agentId": self._keys["agent"]},
            "performative": performative,
            "content": {"body": body},
            "integrity": {},
        }
        if head:
            envelope["sequenceNumber"] = head["sequenceNumber"] + 1
            envelope["integrity"]["previousHash"] = head["hash"]
        envelope["integrity"]["signature"] = "ed25519:" + self._key.sign(rfc8785.dumps(envelope)).hex()
        subject = f"asp.agent.{self._token}.submit.{session}"
        answer: dict[str, Any] = json.loads((await self._client.request(subject, json.dumps(envelope).encode(), timeout=20)).data)
        assert answer["accepted"], answer
        return answer


async def sell(keys: dict[str, Any]) -> None:
    """The seller: asks for 120 first, and comes down by 15."""
    agent = Agent(**keys, terms=Cups)

    @agent.on_invitation
    def invited(deal: Deal[Cups]) -> Decision:
        assert isinstance(deal.invitation, Item)
        return Accept(deal.invitation)

    @agent.on_turn
    def decide(deal: Deal[Cups]) -> Decision:
        if deal.agreed:
            return None
        return Counter(deal.their_offer, Cups(price=max(Decimal(LEAST), Decimal(120 - 15 * deal.round))))

    await agent.run()


def registered(broker: Broker, uri: str) -> dict[str, str]:
    """Registers an agent, and returns the options of an Agent over NATS."""
    out = broker.data.parent / f"{uri.rpartition('/')[2]}.nk"
    where = ["--data", str(broker.data), "--url", broker.nats_url]
    subprocess.run([Broker.program(), "agent", "add", uri, "--key-out", str(out), *where], check=True, capture_output=True)
    login = out.with_suffix(".login.nk").read_text().strip()
    return {"url": broker.nats_url, "agent": uri, "seed": out.read_text().strip(), "login": login}


async def compare(broker: Broker, sessions: int, rounds: int) -> None:
    sdk, raw = (registered(broker, f"agent://acme.com/{name}") for name in ("sdk", "raw"))
    taken: dict[str, list[float]] = {"SDK": [], "by hand": []}
    async with SDK(sdk) as one, Raw(raw) as other:
        for n in range(rounds + 1):
            for name, buyer in (("SDK", one), ("by hand", other)):
                began = time.process_time()
                await buyer.buy(sessions, f"{name} {n}")
                taken[name].append((time.process_time() - began) / sessions * 1000)
    used = ", ".join(f"{name} {version(name)}" for name in ("nats-py", "nkeys", "rfc8785", "pydantic"))
    print(f"Python {platform.python_version()}, {used}, {os.cpu_count()} cores; {sessions} sessions, {rounds} rounds\n")
    ours = taken["SDK"][1:]  # the first round warms up
    print("| CPU time | a session | an act | the SDK costs |\n|---|---|---|---|")
    for name, of in taken.items():
        its = of[1:]
        ms, ratio = statistics.median(its), statistics.median(a / b for a, b in zip(ours, its, strict=True))
        print(f"| {name} | {ms:.2f} ms | {ms / ACTS:.2f} ms | {ratio:.2f} × |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        broker = Broker(Path(data) / "broker", dev=False)
        try:
            keys = json.dumps(registered(broker, SELLER))
            seller = subprocess.Popen([sys.executable, __file__], env={**os.environ, "SELLS": keys})
            try:
                asyncio.run(compare(broker, options.sessions, options.rounds))
            finally:
                seller.kill()
                seller.wait()
        finally:
            broker.kill()


if __name__ == "__main__":
    if keys := os.environ.get("SELLS"):
        asyncio.run(sell(json.loads(keys)))
    else:
        main()
