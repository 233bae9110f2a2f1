"""COSE Receipts (RFC 9942, ``RFC9162_SHA256``) of leaves of a broker's public log.

A receipt shows to who knows nothing of the log's own form that a leaf is in it. It is signed by a key that signs
nothing else: ``log.receiptKey`` of ``broker.info``. It needs ``parley-asp[nats]``.
"""

from __future__ import annotations

import base64
import itertools
import re
from dataclasses import dataclass
from typing import Any

import nacl.exceptions
import nacl.signing

from ._json import JSON
from .publiclog import ProofError, read_checkpoint, root_of

_PEM = re.compile(r"\s*-----BEGIN PUBLIC KEY-----\n([A-Za-z0-9+/=\n]+)-----END PUBLIC KEY-----\s*")
_ED25519 = bytes.fromhex("302a300506032b6570032100")  # what comes before the key in its SubjectPublicKeyInfo
_ALGORITHM, _STRUCTURE, _PROOFS, _INCLUSION = 1, 395, 396, -1
_EDDSA, _RFC9162_SHA256, _SIGN1 = -8, 1, 18
_LONGEST = 63  # hashes of a proof
_DEEPEST = 8


def receipt_key(pem: str) -> bytes:
    """The 32 bytes of the Ed25519 key in a PEM.

    Raises:
        ValueError: it is none.
    """
    found = _PEM.fullmatch(pem)
    raw = base64.b64decode(found[1].replace("\n", ""), validate=True) if found else b""
    if len(raw) != len(_ED25519) + 32 or not raw.startswith(_ED25519):
        raise ValueError("the key of receipts is no Ed25519 key in PEM")
    return raw[len(_ED25519) :]


def verify_receipt(receipt: bytes, key: str, leaf: JSON, index: int, checkpoint: str) -> None:
    """Check that a receipt is of a leaf at an index of the log that a checkpoint is of.

    The checkpoint is taken as it is: ``verify_inclusion`` checks that.

    Args:
        key: of receipts, as PEM.

    Raises:
        ProofError: it is not, or the key did not sign it.
    """
    try:
        public = receipt_key(key)
        tree = read_checkpoint(checkpoint)[0]
        protected, proof, signature = _parts(_whole(receipt))
        headers, said = _whole(protected), _whole(proof)
        if headers[_ALGORITHM] != _EDDSA or headers[_STRUCTURE] != _RFC9162_SHA256:
            raise ValueError("another algorithm or structure")
        size, at, path = said
        if len(path) > _LONGEST or any(len(step) != 32 for step in path):
            raise ValueError("no path of hashes")
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ProofError(f"it is no COSE Receipt with one inclusion proof of RFC9162_SHA256: {error}") from None
    if (size, at) != (tree.size, index) or not 0 <= index < tree.size:
        raise ProofError(f"the receipt is of leaf {at} of {size}; the proof, of {index} of {tree.size}")
    if root_of(leaf, index, size, path) != tree.root:
        raise ProofError("the receipt's proof does not lead to the root of the checkpoint")
    signed = b"\x84" + _head(3, 10) + b"Signature1" + _head(2, len(protected)) + protected + b"\x40" + _head(2, 32) + tree.root
    try:
        nacl.signing.VerifyKey(public).verify(signed, signature)
    except (nacl.exceptions.CryptoError, ValueError):
        raise ProofError("the receipt is not signed by the key of receipts") from None


def _parts(message: Any) -> tuple[bytes, bytes, bytes]:
    """The protected headers, the one proof and the signature of a COSE_Sign1 without its payload."""
    if not isinstance(message, _Tagged) or message.tag != _SIGN1:
        raise ValueError("no COSE_Sign1")
    protected, unprotected, payload, signature = message.value
    [(label, proofs)] = unprotected.items()
    [(kind, [proof])] = proofs.items()
    if (label, kind, payload) != (_PROOFS, _INCLUSION, None) or not all(isinstance(b, bytes) for b in (protected, proof, signature)):
        raise ValueError("not one proof, or a payload")
    return protected, proof, signature


# --- CBOR in its deterministic form (RFC 8949, 4.2.1), as far as a receipt has it


@dataclass(frozen=True)
class _Tagged:
    tag: int
    value: Any


def _whole(data: bytes) -> Any:
    value, end = _read(data, 0, 0)
    if end != len(data):
        raise ValueError("bytes after the end")
    return value


def _read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise ValueError("too deep")
    major, n = data[at] >> 5, data[at] & 31
    at += 1
    if major == 7:
        if n != 22:
            raise ValueError("a value that no receipt has")
        return None, at
    if n >= 24:
        length = 1 << (n - 24)
        if length > 8 or at + length > len(data):
            raise ValueError("an argument that is too long")
        n, at = int.from_bytes(data[at : at + length], "big"), at + length
        if n < (24 if length == 1 else 1 << (4 * length)):
            raise ValueError("not in the shortest form")
    if major < 2:
        return (-1 - n if major else n), at
    if major < 4:
        if at + n > len(data):
            raise ValueError("cut off")
        text = data[at : at + n]
        return (text.decode() if major == 3 else text), at + n
    if major == 6:
        value, at = _read(data, at, depth + 1)
        return _Tagged(n, value), at
    items: list[Any] = []
    keys: list[bytes] = []
    for i in range(n * (major - 3)):
        begins = at
        value, at = _read(data, at, depth + 1)
        items.append(value)
        if major == 5 and i % 2 == 0:
            keys.append(data[begins:at])
    if any(a >= b for a, b in itertools.pairwise(keys)):
        raise ValueError("the labels of a map are not in order")
    return (dict(zip(items[::2], items[1::2], strict=True)) if major == 5 else items), at


def _head(major: int, n: int) -> bytes:
    if n < 24:
        return bytes([major << 5 | n])
    return bytes([major << 5 | 24, n]) if n < 256 else bytes([major << 5 | 25]) + n.to_bytes(2, "big")
