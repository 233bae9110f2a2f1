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
from .deal import Approval, Commitment, Deal, Delegation, Item, Offer, fenced
from .errors import ChainConflict, LoopError, NoAnswer, NotAllowed, ParleyError, Refusal, TenderError, TermsError
from .execution import (
    Amend,
    Compensate,
    Concede,
    Deliver,
    Delivery,
    Deny,
    Dismiss,
    Dispute,
    Disputed,
    Evidence,
    Obligation,
    Report,
    Split,
    Uphold,
    Waive,
    digest_of,
)

__version__ = "0.1.0"

__all__ = [
    "Accept", "Act", "Agent", "Amend", "Approval", "ChainConflict", "Clarify", "Close", "Commit", "Commitment", "Compensate", "Concede",
    "Counter", "Deal", "Decision", "Delegate", "Delegation", "Deliver", "Delivery", "Deny", "Dismiss", "Dispute", "Disputed",
    "Escalate", "Evidence", "Inform", "Item", "LoopError", "NoAnswer", "NotAllowed", "Obligation", "Observe", "Offer", "ParleyError",
    "Propose", "Query", "Refusal", "Reject", "Report", "Split", "TenderError", "TermsError", "Uphold", "Wait", "Waive", "Withdraw",
    "digest_of", "fenced",
]  # fmt: skip
