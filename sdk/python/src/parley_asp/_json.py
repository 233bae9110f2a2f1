"""JSON as parley reads and writes it: decimals stay decimals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import rfc8785

from .errors import TermsError

JSON = dict[str, Any]


def loads(data: bytes | str) -> Any:
    """Read JSON; a number with a fraction or an exponent is a Decimal."""
    return _DECODER.decode(data if isinstance(data, str) else data.decode())


def dumps(value: Any) -> bytes:
    """Write the RFC 8785 form of a value, so that the same value is the same bytes everywhere.

    Raises:
        TermsError: a number cannot be said exactly.
    """
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError:  # such as a Decimal
        pass
    try:
        return rfc8785.dumps(plain(value))
    except rfc8785.CanonicalizationError as error:
        raise TermsError(f"{error}: send it as text") from None


def told(value: Any) -> str:
    """Write what others said for people and models, who may also read numbers that would be sent as text."""
    try:
        return dumps(value).decode()
    except TermsError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=float)


def encode(value: Any) -> bytes:
    """Write JSON that nobody signs, which is quicker than its RFC 8785 form.

    Raises:
        TermsError: a number cannot be said exactly.
    """
    try:
        return _ENCODER.encode(value).encode()
    except ValueError as error:
        raise TermsError(f"{error}: send it as text") from None


def plain(value: Any) -> Any:
    """Replace each Decimal by the number that says exactly the same.

    Raises:
        TermsError: a Decimal has more digits than a JSON number keeps (RFC 8785): send it as text. Or the name of a member is no text.
    """
    if isinstance(value, (str, int)) or value is None:
        return value
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (dict, Mapping)):  # a dict is quicker to tell
        return {member_name(name): plain(member) for name, member in value.items()}
    return value


def member_name(name: Any) -> str:
    """The name of a member, which is text: two others could be the same text.

    Raises:
        TermsError: it is none.
    """
    if not isinstance(name, str):
        raise TermsError(f"the name {name!r} is no text")
    return str.__str__(name)  # of an enum what it is worth


def _number(value: Decimal) -> int | float:
    if not value.is_finite():
        raise TermsError(f"{value} is no number of JSON")
    if value == value.to_integral_value() and abs(value) <= 2**53 - 1:
        return int(value)
    if Decimal(repr(float(value))) != value:
        raise TermsError(f"a JSON number cannot say {value} exactly: send it as text")
    return float(value)


def _unknown(value: Any) -> Any:
    if isinstance(value, (Decimal, Mapping)):
        return plain(value)
    raise TypeError(f"{type(value).__name__} is no value of JSON")


_DECODER = json.JSONDecoder(parse_float=Decimal)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_unknown)
