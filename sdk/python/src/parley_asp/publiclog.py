"""Proofs of a broker's public log (PROTOCOL.md, the public log): RFC 6962 trees under signed checkpoints.

They need only the log's verifier key, as ``parley log key`` prints it, and ``parley-asp[nats]``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import nacl.exceptions
import nacl.signing
import rfc8785

from ._json import JSON
from .errors import ParleyError


class ProofError(ParleyError):
    """The checkpoint is not the log's, or does not prove it."""


@dataclass(frozen=True)
class Checkpoint:
    """A signed size and root of a log."""

    origin: str
    size: int
    root: bytes


def open_checkpoint(text: str, key: str) -> Checkpoint:
    """Read a checkpoint that the log has signed.

    Args:
        key: ``<origin>+<hash>+<base64>``, of a signed note (C2SP).

    Raises:
        ProofError: it is malformed, or the log did not sign it.
    """
    try:
        name, hashed, encoded = key.split("+", 2)
        raw = base64.b64decode(encoded, validate=True)
        checkpoint, signed, signatures = read_checkpoint(text)
        for line in signatures.split("\n"):
            dash, by, signature = [*line.split(" "), "", ""][:3]
            found = base64.b64decode(signature, validate=True)
            if dash == "—" and by == name == checkpoint.origin and found[:4].hex() == hashed and raw[0] == 1:
                nacl.signing.VerifyKey(raw[1:]).verify(signed.encode(), found[4:])
                return checkpoint
    except (ValueError, binascii.Error, nacl.exceptions.CryptoError, IndexError):
        pass
    raise ProofError("the log did not sign this checkpoint")


def read_checkpoint(text: str) -> tuple[Checkpoint, str, str]:
    """A checkpoint without a look at who signed it, what is signed, and the signatures.

    Raises:
        ValueError: it is malformed.
    """
    signed, _, signatures = text.rpartition("\n\n")
    signed += "\n"
    origin, size, root = signed.split("\n")[:3]
    return Checkpoint(origin, int(size), base64.b64decode(root, validate=True)), signed, signatures


def verify_inclusion(leaf: JSON, index: int, proof: Sequence[str], checkpoint: str, key: str) -> Checkpoint:
    """Check that a leaf is in the log at an index; ``proof`` has the hashes from the leaf to the root, in base64.

    Raises:
        ProofError: it is not.
    """
    c = open_checkpoint(checkpoint, key)
    if not 0 <= index < c.size:
        raise ProofError(f"the checkpoint has {c.size} leaves")
    if root_of(leaf, index, c.size, _hashes(proof)) != c.root:
        raise ProofError("the proof does not lead to the root of the checkpoint")
    return c


def root_of(leaf: JSON, index: int, size: int, hashes: Sequence[bytes]) -> bytes:
    """The root of a tree of some size, by the hashes beside the path from one of its leaves.

    Raises:
        ProofError: there are more or fewer hashes than that takes.
    """
    node, last, left = _hash(b"\x00", rfc8785.dumps(leaf)), size - 1, list(hashes)
    while last > 0:
        if index % 2 == 1:
            node = _hash(b"\x01", _next(left) + node)
        elif index < last:
            node = _hash(b"\x01", node + _next(left))
        index, last = index // 2, last // 2
    if left:
        raise ProofError("the proof has more hashes than its tree")
    return node


def verify_consistency(old: str, new: str, proof: Sequence[str], key: str) -> tuple[Checkpoint, Checkpoint]:
    """Check that a newer checkpoint's log begins with all that the older one had.

    Raises:
        ProofError: it does not, or one of them is not the log's.
    """
    a, b = open_checkpoint(old, key), open_checkpoint(new, key)
    hashes = _hashes(proof)
    if a.size > b.size or a.size < 1:
        raise ProofError("the newer checkpoint has fewer leaves")
    if a.size == b.size:
        if hashes or a.root != b.root:
            raise ProofError("two checkpoints of one size have different roots")
        return a, b
    index, last = a.size - 1, b.size - 1  # RFC 9162, 2.1.4.2
    while index % 2 == 1:
        index, last = index // 2, last // 2
    first = second = a.root if index == 0 else _next(hashes)
    while last > 0:
        if index % 2 == 1:
            sibling = _next(hashes)
            first, second = _hash(b"\x01", sibling + first), _hash(b"\x01", sibling + second)
        elif index < last:
            second = _hash(b"\x01", second + _next(hashes))
        index, last = index // 2, last // 2
    if hashes or first != a.root or second != b.root:
        raise ProofError("the newer log is not a continuation of the older one")
    return a, b


def _hash(kind: bytes, data: bytes) -> bytes:
    return hashlib.sha256(kind + data).digest()


def _hashes(proof: Sequence[str]) -> list[bytes]:
    try:
        return [base64.b64decode(h, validate=True) for h in proof]
    except (ValueError, binascii.Error):
        raise ProofError("the proof is not in base64") from None


def _next(hashes: list[bytes]) -> bytes:
    if not hashes:
        raise ProofError("a hash of the proof is missing")
    return hashes.pop(0)
