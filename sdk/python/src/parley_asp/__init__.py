"""Agents that negotiate over a parley broker: one snapshot in, at most one act out."""

from .acts import (
    Accept,
    Act,
    Clarify,
    Close,
    Commit,
    Counter,
    Decision,
    Delegate,
    Escalate,
    Inform,
    Observe,
    Propose,
    Query,
    Reject,
    Wait,
    Withdraw,
)
from .agent import Agent
from .deal import Approval, Deal, Delegation, Item, Offer, fenced
from .errors import ChainConflict, LoopError, NoAnswer, NotAllowed, ParleyError, Refusal, TermsError

__version__ = "0.1.0"

__all__ = [
    "Accept", "Act", "Agent", "Approval", "ChainConflict", "Clarify", "Close", "Commit", "Counter", "Deal", "Decision", "Delegate",
    "Delegation", "Escalate", "Inform", "Item", "LoopError", "NoAnswer", "NotAllowed", "Observe", "Offer", "ParleyError", "Propose",
    "Query", "Refusal", "Reject", "TermsError", "Wait", "Withdraw", "fenced",
]  # fmt: skip
