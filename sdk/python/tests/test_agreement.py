"""Agreements: the vectors, nonsense, and each single change judged as ``parley agreement verify`` judges it."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from test_vectors import cases

from parley_asp.agreement import AgreementReport, verify_agreement
from parley_asp.testing import Broker


def verified(case: Any, document: Any) -> AgreementReport:
    return verify_agreement(json.dumps(document), broker=case["broker"], log_key=case["logKey"], keys=case.get("keys"))


def test_vectors() -> None:
    for c in cases("agreements"):
        report = verified(c, c["document"])
        found = {f.member for f in report.faults}
        if "refused" in c:
            assert found & set(c["refused"]), (c["name"], report.faults)
            continue
        assert not found, (c["name"], report.faults)
        assert (report.proves, report.redacted, report.logged) == (c["proves"], c.get("redacted", []), c["logKey"] != ""), c["name"]


def test_nonsense() -> None:
    """Each member is taken out, or is nonsense: that is a fault, or proves less. Nothing raises."""
    kinds: list[Any] = [None, 7, "x", [], {}, {"x": {}}, [[[]]]]
    for c in cases("agreements")[:3]:
        for name in c["document"]:
            left = {n: v for n, v in c["document"].items() if n != name}
            for changed in (left, *({**c["document"], name: kind} for kind in kinds)):
                report = verified(c, changed)
                less = name in ("signatures", "evidence") and report.proves == "digests"
                assert report.faults or less, (c["name"], name, changed.get(name))
    for nonsense in (b"", b"[", b"[]", b"7", b'{"a":1,"a":1}', b"\xff", "[" * 100000):
        assert verify_agreement(nonsense).faults


Place = tuple[Any, ...]


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """Where the values of a document are."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in members:
        yield (*path, step)
        yield from places(member, (*path, step))


def changes(document: Any) -> Iterator[tuple[Place, Any]]:
    """Documents that differ from this one in one value: it is another, or not there."""
    for path in places(document):
        for takes in (False, True):
            changed = copy.deepcopy(document)
            parent = changed
            for step in path[:-1]:
                parent = parent[step]
            was = parent[path[-1]]
            if takes:
                del parent[path[-1]]
            elif isinstance(was, str):
                parent[path[-1]] = was[:-1] + ("A" if was[-1:] != "A" else "B")
            elif isinstance(was, (int, float)):
                parent[path[-1]] = was + 1
            else:
                continue
            yield path, changed


def test_each_change(tmp_path: Path) -> None:
    """A change is a fault here exactly if it is one there."""

    def there(n: int, case: Any, document: Any) -> bool:
        file = tmp_path / f"{n}.json"
        file.write_text(json.dumps(document))
        command = [Broker.program(), "agreement", "verify", str(file), "--broker-key", case["broker"], "--log-key", case["logKey"]]
        return subprocess.run(command, capture_output=True, env={**os.environ, "PARLEY_URL": ""}, check=False).returncode == 0

    asked = [(c, path, d) for c in cases("agreements")[:3] for path, d in changes(c["document"])]
    with ThreadPoolExecutor(4) as workers:
        accepted = list(workers.map(lambda n: there(n, asked[n][0], asked[n][2]), range(len(asked))))
    assert len(asked) > 200
    differ = [
        (c["name"], path, yes, verified(c, d).faults)
        for (c, path, d), yes in zip(asked, accepted, strict=True)
        if yes == bool(verified(c, d).faults)
    ]
    assert not differ, differ
