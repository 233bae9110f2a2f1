"""The vectors that all SDKs share (test/vectors): what is accepted, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parley_asp._json import dumps
from parley_asp._seal import id_of, shown
from parley_asp.brokerkeys import BrokerKeysError, TrustedKeys
from parley_asp.publiclog import ProofError, verify_consistency, verify_inclusion
from parley_asp.verify import SealedError, open_sealed, signed_by, verify_transcript
from parley_asp.wakeup import Forged, verify

VECTORS = Path(__file__).parents[3] / "test/vectors"


def cases(file: str, *path: str) -> list[Any]:
    found = json.loads((VECTORS / f"{file}.json").read_text())
    for name in path:
        found = found[name]
    assert len(found) > 3
    return list(found)


def test_message_ids() -> None:
    for c in cases("messageids"):
        assert dumps([c["sessionId"], c["head"], c["performative"], shown(c)]).decode() == c["canonical"]
        assert id_of(c["sessionId"], c["head"], c) == c["messageId"]


def test_envelopes() -> None:
    for c in cases("envelopes"):
        try:
            envelope = json.loads(c["envelope"], object_pairs_hook=dict_once)
        except ValueError:
            assert c["refused"] == "malformed"
            continue
        signature = envelope["integrity"].pop("signature", "")
        signed = dumps(envelope)
        assert signed_by(c["key"], signed, signature) == ("refused" not in c), c["name"]
        if "refused" not in c:
            assert signed.decode() == c["signed"]


def dict_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a member twice")
    return dict(pairs)


def test_broker_keys() -> None:
    for c in cases("brokerkeys"):
        try:
            trusted = TrustedKeys(c["broker"], c["keys"])
        except BrokerKeysError:
            assert c.get("refused"), c["name"]
            continue
        assert "refused" not in c and all(r["key"] in trusted for r in c["keys"]), c["name"]


def test_transcripts() -> None:
    for c in cases("transcripts"):
        record = "\n".join(c["entries"]).encode()
        faults = verify_transcript(
            record, c["broker"], broker_keys=c.get("brokerKeys"), session=c["sessionId"], head=c.get("head", ""), length=c.get("length", 0)
        )
        found = [{"line": f.line, "rule": f.rule} for f in faults]
        for line, text in enumerate(c["entries"], 1):
            entry = json.loads(text)
            if parts := c.get("sealed", {}).get(entry.get("messageId")):
                try:
                    assert open_sealed(entry["content"]["body"], parts) == c["opened"][entry["messageId"]]
                except SealedError:
                    found.append({"line": line, "rule": "sealed"})
        assert found == c.get("refused", []), c["name"]


def test_webhooks() -> None:
    for c in cases("webhooks"):
        headers = {name: c[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature")}
        if "refused" in c:
            with pytest.raises(Forged):
                verify(c["secret"], headers, c["body"].encode(), now=c["now"])
        else:
            assert verify(c["secret"], headers, c["body"].encode(), now=c["now"])["type"] == "session.news"


def test_public_log() -> None:
    key = json.loads((VECTORS / "publiclog.json").read_text())["key"]
    for c in cases("publiclog", "inclusion"):
        if "refused" in c:
            with pytest.raises(ProofError):
                verify_inclusion(c["leaf"], c["index"], c["proof"], c["checkpoint"], key)
        else:
            assert verify_inclusion(c["leaf"], c["index"], c["proof"], c["checkpoint"], key).size == 7
    for c in cases("publiclog", "consistency"):
        if "refused" in c:
            with pytest.raises(ProofError):
                verify_consistency(c["old"], c["new"], c["proof"], key)
        else:
            verify_consistency(c["old"], c["new"], c["proof"], key)
