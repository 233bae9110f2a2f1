"""Public nkeys (``U…``), and what they sign."""

from __future__ import annotations

import base64
import binascii
import re

import nacl.exceptions
import nacl.signing

_USER = 20 << 3  # the first byte of its nkey


def signed_by(key: str, message: bytes, signature: str) -> bool:
    """Whether a public nkey (``U…``) signed a message: ``ed25519:`` and 128 hex digits."""
    if not re.fullmatch(r"ed25519:[0-9a-f]{128}", signature):
        return False
    try:
        nacl.signing.VerifyKey(raw_key(key)).verify(message, bytes.fromhex(signature[8:]))
    except (nacl.exceptions.CryptoError, ValueError, TypeError):
        return False
    return True


def raw_key(key: str) -> bytes:
    """The 32 bytes of a public nkey (``U…``).

    Raises:
        ValueError: it is none, or was mistyped.
    """
    raw = base64.b32decode(key + "=" * (-len(key) % 8))
    if len(raw) != 35 or raw[0] != _USER or binascii.crc_hqx(raw[:33], 0) != int.from_bytes(raw[33:], "little"):
        raise ValueError("the key is none of a user (U…)")
    return raw[1:33]
