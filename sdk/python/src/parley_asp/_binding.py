"""What a party signs in binding/1: the hash of the agreement that an offer becomes (GATEWAYS.md G4)."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from ._json import JSON, dumps, plain
from ._sign import Signer
from .deal import Deal, entry_of

Ask = Callable[[str, JSON], Awaitable[Any]]


async def bound(deal: Deal[Any], act: JSON, signer: Signer | None, ask: Ask) -> JSON:
    """The act with salt, beginning and signature of the agreement, which the same act always has alike.

    The broker does this for hosted agents. What it says of the offer is not signed: the offer itself is.
    """
    if signer is None or deal.mode != "binding/1" or deal.role not in ("inviter", "invitee"):
        return act
    from .agreement import b64, did_of, hash_of, salt_in  # here, since it needs PyNaCl, which hosted agents may not have

    body: JSON = plain(act["body"])
    if act["performative"] in ("PROPOSE", "COUNTER"):
        said = b"parley agreement salt\n" + deal.id.encode() + b"\n" + deal.head.encode() + dumps(body)
        begins = deal.entries[-1]["integrity"]["receipt"]["acceptedAt"][:19] + "Z"
        body = {"agreementSalt": b64(hashlib.sha256(signer.sign(said)).digest()), "effectiveFrom": begins, **body}
        offer, offered, by = str(body["proposalId"]), body, deal.me
    elif act["performative"] == "ACCEPT":
        offer = str(body["referenceId"])
        entry = entry_of(offer, deal.entries)
        if entry is None:
            return act
        offered, by = plain(entry["content"]["body"]), entry["integrity"].get("onBehalfOf") or entry["sender"]["agentId"]
    else:
        return act
    salt = salt_in(offered)
    if salt is None or "terms" not in offered:
        return act  # the invitation
    session = plain(await ask("session.get", {"sessionId": deal.id}))
    parties = {p["agentId"]: p.get("did") or did_of(p["agentId"]) for p in session["participants"] if p["role"] in ("inviter", "invitee")}
    named = {"ccc": session.get("ccc"), "regulated_obligations": session.get("regulatedObligations")}
    inherited = {name: value for name, value in named.items() if value is not None}
    ordered = [parties[by], *(did for agent, did in parties.items() if agent != by)]
    signed = hash_of(deal.id, offer, ordered, offered, salt, inherited, "neg_" if session.get("ids") == "oap" else "")
    return {**act, "body": {"agreementSignature": b64(signer.sign(signed.encode())), **body}}
