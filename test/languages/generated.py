# A negotiation by a client that openapi-python-client generates from /openapi.json.
import os

from parley import AuthenticatedClient
from parley.api.default import (
    delete_sessions_session_id, get_agents_agent_id_card, get_sessions, get_sessions_session_id, get_sessions_session_id_messages,
    get_sessions_session_id_messages_message_id, get_sessions_session_id_snapshot, post_sessions, post_sessions_session_id_messages, post_turns_pickup,
    put_agents_agent_id_card,
)
from parley.models import (
    AcceptAct, AcceptBody, AcceptEntry, Acceptance, CardInput, CloseBody, CloseBodyOutcome, CounterAct, CounterBody, CounterEntry, CounterMove, Opening,
    PostTurnsPickupBody, Problem, ProposeAct, ProposeBody, ProposeEntry, ProposeHistoryEntry, Terms,
)

BUYER, SELLER = "agent://acme.com/buyer", "agent://widgets.co/seller"


def client(agent):
    return AuthenticatedClient(base_url=os.environ["BASE"], token=agent, raise_on_unexpected_status=True)


buyer, seller, outsider = client(BUYER), client(SELLER), client("agent://other.io/x")

card = put_agents_agent_id_card.sync(SELLER, client=seller, body=CardInput.from_dict({"name": "Cups Ltd", "capabilities": ["cups"]}))
assert card.name == "Cups Ltd" and get_agents_agent_id_card.sync(SELLER, client=buyer).capabilities == ["cups"], card

opened = post_sessions.sync(client=buyer, body=Opening(with_=[SELLER], purpose="1,000 cups"))
assert isinstance(opened, Acceptance) and opened.state == "INVITED", opened
session = str(opened.session_id)


def say(agent, act, key):
    return post_sessions_session_id_messages.sync(session, client=agent, body=act, idempotency_key=key)


def accept(reference):
    return AcceptAct(performative="ACCEPT", body=AcceptBody(reference_id=reference))


def terms(price):
    return Terms.from_dict({"price": price})


assert say(seller, accept("invitation"), "a").state == "INTRODUCED"
offer = ProposeAct(performative="PROPOSE", body=ProposeBody(proposal_id="p1", type_="service-agreement", subject="cups", terms=terms(500)))
first, again = say(seller, offer, "b"), say(seller, offer, "b")
assert again.duplicate is True and again.sequence_number == first.sequence_number, again

# The offer is one message on every face: in the turn that waits, in the news, as an entry.
turn = post_turns_pickup.sync(client=buyer, body=PostTurnsPickupBody())
row = turn.history[-1]
assert isinstance(row, ProposeHistoryEntry) and row.body.proposal_id == "p1" and row.body.terms["price"] == 500, row
deal = get_sessions_session_id_snapshot.sync(session, client=buyer, since=first.sequence_number)
assert [type(e) for e in deal.news] == [ProposeEntry] and deal.news[0].content.body.subject == "cups", deal.news
assert "p1" in [m.body.reference_id for m in deal.moves if isinstance(m, CounterMove)], deal.moves

counter = CounterAct(performative="COUNTER", body=CounterBody(proposal_id="p2", reference_id="p1", terms=terms(400)))
assert say(buyer, counter, "c").state == "CONVERSING"
refused = say(buyer, accept("p2"), "d")
assert isinstance(refused, Problem) and (refused.status, refused.code) == (403, "own_proposal"), refused
assert isinstance(get_sessions_session_id.sync(session, client=outsider), Problem)

waiting = get_sessions.sync(client=seller, awaiting="me")
assert [str(row.session_id) for row in waiting.sessions] == [session], waiting
assert say(seller, accept("p2"), "e").state == "CONVERSING"
view = get_sessions_session_id.sync(session, client=buyer)
assert {p.proposal_id: p.status for p in view.proposals} == {"p1": "countered", "p2": "accepted"}, view
assert delete_sessions_session_id.sync(session, client=buyer, body=CloseBody(outcome=CloseBodyOutcome.COMPLETED, summary="400")).state == "CLOSED"

page = get_sessions_session_id_messages.sync(session, client=seller, limit=200)
entry = get_sessions_session_id_messages_message_id.sync(session, str(first.message_id), client=buyer)
kinds = [ProposeEntry, AcceptEntry, ProposeEntry, CounterEntry, AcceptEntry]
assert [type(m) for m in page.messages][:5] == kinds and len(page.messages) == 6 and page.messages[2].integrity.hash_ == first.hash_ == entry.integrity.hash_, page
print(session)
