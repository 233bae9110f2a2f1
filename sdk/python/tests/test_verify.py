"""The verifier finds what Go's finds, in the vectors of session/transcript/testdata."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parley_asp.verify import verify_transcript

VECTORS = sorted((Path(__file__).parents[3] / "session/transcript/testdata").glob("*.txtar"))
SEPARATOR = b"-- transcript.jsonl --\n"


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v.stem)
def test_vector(vector: Path) -> None:
    """It has the faults that it names."""
    head, _, transcript = vector.read_bytes().partition(SEPARATOR)
    header = head.decode()

    def given(key: str) -> str:
        found = re.search(f"^{key}: (.*)$", header, re.MULTILINE)
        return found[1] if found else ""

    faults = verify_transcript(
        transcript, given("broker"), session=given("expect-session"), head=given("expect-head"),
        length=int(given("expect-length") or 0), allow_unsigned="\nallow-unsigned" in header,
    )  # fmt: skip
    want = re.findall(r"^fault: line (\d+), (\w+)$", header, re.MULTILINE)
    assert [(str(f.line), f.rule) for f in faults] == want, "\n".join(map(str, faults))


def test_there_are_vectors() -> None:
    assert len(VECTORS) > 50
