"""A decision becomes an act: one of the snapshot's moves, filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ._json import JSON, dumps, member_name, plain
from .acts import Act
from .deal import Deal
from .errors import NotAllowed, TermsError

A = TypeVar("A", bound=Act)

_ANSWERS = {"ACCEPT", "REJECT", "COUNTER", "CLARIFY", "WITHDRAW"}  # which name what they are about


def act_of(decision: Act, deal: Deal[Any]) -> JSON:
    """The act that a decision is: ``performative``, ``body``, and ``recipient`` where there is one.

    Raises:
        NotAllowed: it is none of the deal's moves, nor an ACCEPT of an open offer, of which the broker says why not.
        TermsError: its terms cannot be said exactly.
    """
    move = _move(decision, deal)
    body = plain(move["body"])
    fills = {name: _plain(value) for name, value in decision.fills().items()}
    if decision.performative == "INFORM":
        body["data"] = _data(body.get("data"), fills["data"])
    else:
        body.update(fills)
    if decision.performative in ("PROPOSE", "COUNTER") and decision.kind is None and deal.schema in deal.schemas:
        body["schema"] = deal.schema
    body.update(_plain(decision.also))
    if "subject" in move["fill"] and not body.get("subject"):
        body["subject"] = deal.purpose or "an offer"
    act: JSON = {"performative": decision.performative, "body": body}
    if to := decision.recipient or move.get("recipient"):
        act["recipient"] = to
    return act


def checked(decision: A, floats: bool) -> A:
    """The decision, if its terms can be said exactly. ``floats`` may be in those of offers; quantities of obligations are floats.

    Raises:
        TermsError: they cannot, and it names the path of the first value that is wrong.
    """
    terms = {**decision.fills(), **decision.also}.get("terms")
    if terms is None:
        return decision
    if not isinstance(terms, Mapping) and not hasattr(terms, "model_dump"):
        raise TermsError(f"terms is a {type(terms).__name__}: give a mapping, or a model of pydantic")
    _exact(terms, "terms", floats or decision.performative not in ("PROPOSE", "COUNTER") or decision.kind is not None)
    return decision


def committed_before(decision: Act, deal: Deal[Any]) -> bool:
    """Whether a COMMIT says again what the same side said about the same offer, and what is open or accepted still."""
    made = deal.commitment(decision.reference) if decision.performative == "COMMIT" and decision.reference else None
    says = {**decision.fills(), **decision.also}
    return bool(made and made.mine and all(dumps(_plain(made.raw.get(n))) == dumps(_plain(says.get(n))) for n in ("terms", "outcome")))


def _move(decision: Act, deal: Deal[Any]) -> JSON:
    same = [
        m
        for m in deal.moves
        if m["performative"] == decision.performative and m.get("referenceId") == decision.reference and _kind(m) == decision.kind
    ]
    outcome = decision.fills().get("outcome")
    for m in same:  # of COMMIT's moves, the one with the outcome, and with terms or without
        if m["body"].get("outcome") == outcome or decision.performative != "COMMIT":
            return m
    if decision.performative == "ACCEPT" and any(o.id == decision.reference and o.open and not o.mine for o in deal.offers):
        return {"body": {"referenceId": decision.reference}, "fill": ()}  # the broker says why not
    about = f" of {decision.reference}" if decision.reference else ""
    why = f"{decision.performative}{about} is not allowed for you while {deal.state}"
    if decision.performative in _ANSWERS and not decision.reference:
        why = f"{decision.performative} names no offer: their_offer is false while none of another side is open"
    raise NotAllowed(
        f"{why}; allowed: {', '.join(deal.allowed) or 'nothing'}",
        details={"state": deal.state, "allowed": list(deal.allowed)},
    )


def _kind(move: JSON) -> str | None:
    """What a move does with what was agreed."""
    body = move["body"]
    if move["performative"] == "PROPOSE":
        return "amendment" if body.get("type") == "amendment" else None
    data = body.get("data")
    if move["performative"] != "INFORM" or not isinstance(data, dict) or not data.keys() & {"commitmentId", "disputeId"}:
        return None
    return str(data.get("position") or data.get("decision") or body["type"])


def _data(ready: Any, said: Any) -> Any:
    """The data of an INFORM: the move's has what it answers."""
    if not isinstance(ready, dict):
        return said
    if isinstance(answers := ready.get("answers"), list):
        given = said if isinstance(said, list) else [said]
        for answer, value in zip(answers, given, strict=False):
            answer["answer"] = value
        return ready
    return {**ready, **(said if isinstance(said, dict) else {"value": said})}


def _exact(value: Any, path: str, floats: bool) -> None:
    if isinstance(value, Mapping):
        for name, member in value.items():
            if not isinstance(name, str):
                raise TermsError(f"{path} has the name {name!r}, which is no text")
            _exact(name, f"the name {name!r} in {path}", floats)
            _exact(member, f"{path}.{name}", floats)
    elif isinstance(value, (list, tuple)):
        for n, item in enumerate(value):
            _exact(item, f"{path}[{n}]", floats)
    elif isinstance(value, float) and not floats:
        raise TermsError(f"{path} is the float {value}, which cannot say most amounts: use Decimal, or Agent(floats=True)")
    elif hasattr(value, "model_dump"):
        _exact(_dumped(value), path, floats)
    else:
        try:
            dumps(value)
        except TermsError as error:
            raise TermsError(f"{path}: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, (str, int)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (dict, Mapping)):
        return {member_name(name): _plain(member) for name, member in value.items()}
    from pydantic import BaseModel

    if isinstance(value, BaseModel):
        return plain(_dumped(value))
    return plain(value)


def _dumped(model: Any) -> Any:
    return model.model_dump(mode="python", by_alias=True, exclude_none=True)
