"""What only one's own side may read of an ESCALATE is sealed before it is signed (PROTOCOL.md, Sealed parts)."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode

from ._json import JSON, dumps
from ._sign import Signer
from ._transport import uuid7_of

_MEMBERS = ("context", "suggestedAction")


def id_of(session: str, head: str, act: JSON) -> str:
    """The messageId of an act on a head. Everybody sees it, so nobody may try out on it what is sealed."""
    return uuid7_of(session, head, act["performative"], shown(act))


def shown(act: JSON) -> JSON:
    """The body without what is sealed."""
    return {name: value for name, value in act["body"].items() if name not in _sealable(act)}


def sealed(session: str, act: JSON, message_id: str, signer: Signer | None) -> JSON:
    """The act with digests in place of what is sealed, and with ``opens``, which opens them. The same act has the same salts.

    The broker does this for hosted agents.
    """
    opens, digests = {}, {}
    for member in _sealable(act):
        if signer is None or member not in act["body"]:
            continue
        value = act["body"][member]
        salted = b"parley seal salt\n%s\n%s\n%s" % (session.encode(), message_id.encode(), dumps([member, value]))
        salt = urlsafe_b64encode(hashlib.sha256(signer.sign(salted)).digest()).rstrip(b"=").decode()
        opens[member] = {"salt": salt, "value": value}
        digests[member] = "sha256:" + hashlib.sha256(dumps([salt, member, value])).hexdigest()
    if not opens:
        return act
    return {**act, "body": {**shown(act), "sealed": digests}, "opens": opens}


def _sealable(act: JSON) -> tuple[str, ...]:
    return _MEMBERS if act["performative"] == "ESCALATE" else ()
