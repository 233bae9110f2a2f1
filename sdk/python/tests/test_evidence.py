"""Evidence: the vectors, and each single change judged as ``parley evidence verify`` judges it."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from test_vectors import cases

from parley_asp.agreement import AgreementFault
from parley_asp.evidence import EvidenceReport, verify_evidence
from parley_asp.publiclog import ProofError
from parley_asp.receipt import verify_receipt


def verified(case: Any, bundle: Any) -> EvidenceReport:
    return verify_evidence(json.dumps(bundle), broker=case["broker"], log_key=case["logKey"], receipts_key=case["receiptsKey"])


def test_vectors() -> None:
    for c in cases("evidence"):
        report = verified(c, c["bundle"])
        found = {f.member for f in report.faults}
        if "refused" in c:
            assert found & set(c["refused"]), (c["name"], report.faults)
            continue
        assert not found, (c["name"], report.faults)
        assert (report.logged, report.withheld) == (c["logged"], c["withheld"]), c["name"]
        assert report.claimed == (["/disputes/0"] if c["withheld"] else []), c["name"]


def test_trust() -> None:
    """What is not given is taken from the bundle; what is given is another's."""
    c = cases("evidence")[0]
    report = verify_evidence(c["bundle"])
    assert not report.faults and report.logged == 0
    assert report.bundle["obligations"] == c["bundle"]["obligations"]
    strange = c["receiptsKey"].replace("MCowBQYDK2VwAyEA", "MCowBQYDK2VwAyEB")
    buyer = c["bundle"]["obligations"][1]["party"]
    for given, at in (
        ({"broker": "UC3SKXRAI3DPYBP2ECEGWSQDBWYRSOCNFTUNDAMXAFTS5BO2FTZZSG4F"}, "/broker"),
        ({"log_key": c["logKey"].replace("parley.example", "another.example")}, "/ended"),
        ({"receipts_key": strange}, "/receipts/key"),
        ({"receipts_key": "none"}, "/receipts/key"),
        ({"keys": {buyer: c["broker"]}}, "/agreements/0/evidence/acceptance"),
    ):
        assert at in {f.member for f in verify_evidence(c["bundle"], **given).faults}, given


def test_nonsense() -> None:
    """Each member is nonsense: that is a fault. Nothing raises."""
    kinds: list[Any] = [None, 7, -1, "x", True, [], {}, {"x": {}}, [{}], [[[]]], [None]]
    for c in (cases("evidence")[0], cases("evidence")[5]):
        for name, was in c["bundle"].items():
            for kind in kinds:
                if kind != was and not (c.get("withheld") and name == "disputes" and kind == []):
                    assert verified(c, {**c["bundle"], name: kind}).faults, (c["name"], name, kind)
        assert verified(c, {**c["bundle"], "more": 1}).faults
    for nonsense in (b"", b"[", b"[]", b"7", b'{"a":1,"a":1}', b"\xff", "[" * 100000, '{"format":"parley-evidence/1"}'):
        assert verify_evidence(nonsense).faults


def test_receipt() -> None:
    """A receipt is one spelling of bytes, each of which counts."""
    c = cases("evidence")[0]["bundle"]
    key, ended, receipt = c["receipts"]["key"], c["ended"], base64.b64decode(c["receipts"]["session"])
    verify_receipt(receipt, key, ended["leaf"], ended["index"], ended["checkpoint"])
    changed = [receipt[:i] + bytes([receipt[i] ^ bit]) + receipt[i + 1 :] for i in range(len(receipt)) for bit in (1, 32)]
    for other in [*changed, receipt[:-1], receipt + b"\0", b"", b"\x9b" + b"\xff" * 8, b"\xc6" * 99]:
        with pytest.raises(ProofError):
            verify_receipt(other, key, ended["leaf"], ended["index"], ended["checkpoint"])


def changes(bundle: Any) -> Iterator[tuple[str, Any]]:
    """Bundles that differ from this one in one value, with the name of the change (test/vectors/README.md)."""
    last = ("transcript", len(bundle["transcript"]) - 1)
    for path in places(bundle, (), last):
        name = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
        for how in ("gone", "other"):
            changed = copy.deepcopy(bundle)
            parent = changed
            for step in path[:-1]:
                parent = parent[step]
            was = parent[path[-1]]
            if how == "gone":
                del parent[path[-1]]
            elif isinstance(was, str):
                parent[path[-1]] = was[:-1] + ("A" if was[-1:] != "A" else "B")
            elif isinstance(was, (int, float)):
                parent[path[-1]] = was + 1
            else:
                continue
            yield f"{how} {name}", changed


def places(value: Any, path: tuple[Any, ...], last: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Where the values of a bundle are; entries but the last are changed as a whole."""
    if isinstance(value, dict) and "integrity" in value and path != last:
        return
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in members:
        yield (*path, step)
        yield from places(member, (*path, step), last)


def faults_of(case: Any, bundle: Any) -> list[AgreementFault]:
    return verified(case, bundle).faults


def test_each_change() -> None:
    """A change is a fault here exactly if it is one there."""
    tried = [(c, name, b) for c in cases("evidence") if "unproven" in c for name, b in changes(c["bundle"])]
    assert len(tried) > 600
    with ProcessPoolExecutor(2) as workers:
        found = workers.map(faults_of, (c for c, _, _ in tried), (b for _, _, b in tried), chunksize=64)
        accepted = {(c["name"], name) for (c, name, _), faults in zip(tried, found, strict=True) if not faults}
    assert accepted == {(c["name"], name) for c in cases("evidence") for name in c.get("unproven", [])}
