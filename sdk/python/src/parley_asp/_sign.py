"""Envelopes that an agent signs with its own key (PROTOCOL.md section 3)."""

from __future__ import annotations

import re
import time
from datetime import datetime, timezone
from typing import Any

from ._json import JSON, dumps, encode
from .errors import StaleTimestamp


def token_of(uri: str) -> str:
    """A principal's token: its URI as one NATS subject token (PROTOCOL.md section 1)."""
    scheme, _, name = uri.partition("://")
    spelt = "".join(_spell(b) for b in name.encode())
    return ("@" if scheme == "human" else "") + spelt


def _spell(b: int) -> str:
    c = chr(b)
    if re.fullmatch(r"[a-z0-9-]", c):
        return c
    return {".": "_", "/": "~"}.get(c, f"={b:02x}")


def ahead_of(refused: StaleTimestamp) -> float:
    """How many seconds the broker's clock, which the refusal names, is ahead of this one."""
    now = refused.details.get("now") if isinstance(refused.details, dict) else None
    return datetime.fromisoformat(str(now)[:19] + "+00:00").timestamp() - time.time() if now else 0.0


class Signer:
    """Signs as one principal, with the seed of its signing key (``SU…``)."""

    def __init__(self, agent: str, seed: str) -> None:
        try:
            import nkeys
        except ImportError as error:  # pragma: no cover
            raise ImportError("an own key needs pip install 'parley-asp[nats]'") from error
        self.agent = agent
        self._key: Any = nkeys.from_seed(bytearray(seed.encode()))

    def __repr__(self) -> str:
        return f"Signer({self.agent!r})"

    def sign(self, data: bytes) -> bytes:
        """The 64 bytes of a signature."""
        signature: bytes = self._key.sign(data)
        return signature

    def envelope(self, session: str, act: JSON, head: JSON | None, message_id: str, now: float) -> bytes:
        """The bytes of a signed envelope, on the entry that is the head, and beside it what opens its sealed members, if there are any."""
        at = datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        envelope: JSON = {
            "version": "asp/0.1",
            "messageId": message_id,
            "sessionId": session,
            "timestamp": at,
            "sender": {"agentId": self.agent},
            "performative": act["performative"],
            "content": {"body": act["body"]},
            "integrity": {},
        }
        if act.get("recipient"):
            envelope["recipient"] = act["recipient"]
        if head is not None:
            envelope["sequenceNumber"] = int(head["n"]) + 1
            envelope["integrity"]["previousHash"] = head["hash"]
        envelope["integrity"]["signature"] = "ed25519:" + self.sign(dumps(envelope)).hex()
        return encode({"envelope": envelope, "sealed": act["opens"]} if "opens" in act else envelope)
