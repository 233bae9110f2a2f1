# A negotiation by a client that openapi-python-client generates from /openapi.json.
import os

from parley import AuthenticatedClient
from parley.api.default import (
    delete_sessions_session_id, get_agents_agent_id_card, get_sessions, get_sessions_session_id, get_sessions_session_id_messages,
    get_sessions_session_id_messages_message_id, post_sessions, post_sessions_session_id_messages, put_agents_agent_id_card,
)
from parley.models import CLOSE, Acceptance, Act, Opening, Problem, PutAgentsAgentIdCardBody

BUYER, SELLER = "agent://acme.com/buyer", "agent://widgets.co/seller"


def client(agent):
    return AuthenticatedClient(base_url=os.environ["BASE"], token=agent, raise_on_unexpected_status=True)


buyer, seller, outsider = client(BUYER), client(SELLER), client("agent://other.io/x")

card = put_agents_agent_id_card.sync(SELLER, client=seller, body=PutAgentsAgentIdCardBody.from_dict({"name": "Cups Ltd", "capabilities": ["cups"]}))
assert card.name == "Cups Ltd" and get_agents_agent_id_card.sync(SELLER, client=buyer).capabilities == ["cups"], card

opened = post_sessions.sync(client=buyer, body=Opening(with_=[SELLER], purpose="1,000 cups"))
assert isinstance(opened, Acceptance) and opened.state == "INVITED", opened
session = str(opened.session_id)


def say(agent, performative, key, **body):
    act = Act.from_dict({"performative": performative, "body": body})
    return post_sessions_session_id_messages.sync(session, client=agent, body=act, idempotency_key=key)


assert say(seller, "ACCEPT", "a", referenceId="invitation").state == "INTRODUCED"
offer = {"proposalId": "p1", "type": "service-agreement", "subject": "cups", "terms": {"price": 500}}
first, again = say(seller, "PROPOSE", "b", **offer), say(seller, "PROPOSE", "b", **offer)
assert again.duplicate is True and again.sequence_number == first.sequence_number, again
assert say(buyer, "COUNTER", "c", proposalId="p2", referenceId="p1", terms={"price": 400}).state == "CONVERSING"
refused = say(buyer, "ACCEPT", "d", referenceId="p2")
assert isinstance(refused, Problem) and (refused.status, refused.code) == (403, "own_proposal"), refused
assert isinstance(get_sessions_session_id.sync(session, client=outsider), Problem)

waiting = get_sessions.sync(client=seller, awaiting="me")
assert [str(row.session_id) for row in waiting.sessions] == [session], waiting
assert say(seller, "ACCEPT", "e", referenceId="p2").state == "CONVERSING"
view = get_sessions_session_id.sync(session, client=buyer)
assert {p.proposal_id: p.status for p in view.proposals} == {"p1": "countered", "p2": "accepted"}, view
assert delete_sessions_session_id.sync(session, client=buyer, body=CLOSE.from_dict({"outcome": "completed", "summary": "400"})).state == "CLOSED"

page = get_sessions_session_id_messages.sync(session, client=seller, limit=200)
entry = get_sessions_session_id_messages_message_id.sync(session, str(first.message_id), client=buyer)
assert len(page.messages) == 6 and page.messages[2].integrity.hash_ == first.hash_ == entry.integrity.hash_, page
print(session)
