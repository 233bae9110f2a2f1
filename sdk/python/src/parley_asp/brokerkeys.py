"""The keys that a broker has signed receipts with, for one that has replaced its key.

A history is ``keys`` of ``broker.info``, ``parley keys show broker --json``, or ``brokerKeys`` of a bundle of evidence.
Each record but the first is signed by the key before and by its own (PROTOCOL.md section 3), so whoever trusts one key
knows the others::

    faults = verify_transcript(data, "UC…", broker_keys=json.loads(Path("broker.keys.json").read_text()))

It needs ``parley-asp[nats]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import rfc8785

from ._json import JSON
from ._nkey import raw_key, signed_by

MAX_KEYS = 1000
_SKEW = timedelta(minutes=5)
_PREFIX = b"parley broker key\n"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z")
_RECORD = {"key", "previous", "since", "signature", "proof"}


class BrokerKeysError(ValueError):
    """A history of a broker's keys is not genuine, or does not have the trusted key."""


class TrustedKeys:
    """The keys of one broker whose receipts a verifier accepts, each in its time."""

    def __init__(self, broker: str, history: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Trust one key, and with a history all others of it.

        Raises:
            BrokerKeysError: the history is not genuine, or does not have the key.
        """
        if history is None:
            self._terms: dict[str, tuple[str, str]] = {broker: ("", "")}
            return
        _check(history)
        since = [str(r.get("since", "")) for r in history]
        self._terms = {r["key"]: (since[i], since[i + 1] if i + 1 < len(history) else "") for i, r in enumerate(history)}
        if broker not in self._terms:
            raise BrokerKeysError(f"the history of the broker's keys does not have the trusted key, {broker}")

    def __contains__(self, key: str) -> bool:
        return key in self._terms

    def receipted(self, hashed: str, receipt: JSON) -> bool:
        """Whether one of the keys signed the receipt of an entry, in its time."""
        key, at = receipt["broker"], receipt["acceptedAt"]
        said = rfc8785.dumps({"acceptedAt": at, "hash": hashed, "state": receipt["state"]})
        return key in self._terms and signed_by(key, said, receipt["signature"]) and self._timely(key, at)

    def _timely(self, key: str, at: str) -> bool:
        since, until = self._terms[key]
        if not since and not until:
            return True
        if not is_time(at):
            return False
        try:
            return not (since and at < _shifted(since, -_SKEW)) and not (until and at > _shifted(until, _SKEW))
        except (ValueError, OverflowError):
            return False


def trusted_by(broker: str, history: Sequence[Mapping[str, Any]] | None) -> TrustedKeys | None:
    """What a caller trusts: the key that it names, or else the newest of a history; None if it names neither."""
    if history is not None and not broker:
        _check(history)
        broker = str(history[-1]["key"])
    return TrustedKeys(broker, history) if broker else None


def _shifted(at: str, by: timedelta) -> str:
    """A time some seconds later, in the one form that sorts; its nanoseconds stay."""
    moved = datetime.fromisoformat(at[:19]) + by
    return moved.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + at[19:]


def _check(history: Sequence[Mapping[str, Any]]) -> None:
    if not isinstance(history, Sequence) or isinstance(history, (str, bytes)) or not 0 < len(history) <= MAX_KEYS:
        raise BrokerKeysError(f"a history of a broker's keys has 1 to {MAX_KEYS} records")
    seen: set[str] = set()
    for i, record in enumerate(history):
        if why := _wrong(history, i, record, seen):
            raise BrokerKeysError(f"the history of the broker's keys: record {i}: {why}")
        seen.add(record["key"])


def _wrong(history: Sequence[Mapping[str, Any]], i: int, r: Mapping[str, Any], seen: set[str]) -> str:
    """Why a record is not genuine, "" if it is."""
    if not isinstance(r, Mapping) or set(r) != (_RECORD if i else {"key"}) or not all(isinstance(v, str) for v in r.values()):
        return "it has more or less than a record has"
    try:
        raw_key(r["key"])
    except ValueError as error:
        return str(error)
    if r["key"] in seen:
        return "its key is there twice"
    if i == 0:
        return ""
    before, since = history[i - 1], r["since"]
    if r["previous"] != before["key"]:
        return "it does not follow the key before it"
    if not is_time(since):
        return "since is not in UTC with nine digits after the second"
    if since <= before.get("since", ""):
        return "it is not later than the record before"
    said = _PREFIX + rfc8785.dumps({"key": r["key"], "previous": r["previous"], "since": since})
    if not signed_by(r["previous"], said, r["signature"]):
        return "the key before did not sign it"
    if not signed_by(r["key"], said, r["proof"]):
        return "its own key did not sign it"
    return ""


def is_time(at: str) -> bool:
    """Whether a text is a time in the one form that sorts: UTC, nine digits after the second."""
    if not _TIME.fullmatch(at):
        return False
    try:
        datetime.fromisoformat(at[:19])
    except ValueError:
        return False
    return True
