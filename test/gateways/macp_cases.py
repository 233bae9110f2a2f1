"""MACP's own Python SDK plays proposal-mode sessions against a broker under --dev.

MACP is its host:port. A case is named by the first argument; what it asserts fails it.
"""

import os
import sys

import grpc
from macp.v1 import core_pb2, envelope_pb2
from macp_sdk import AuthConfig, MacpClient
from macp_sdk.client import macp_error_code
from macp_sdk.envelope import build_envelope, serialize_message
from macp_sdk.errors import MacpAckError, MacpIdentityMismatchError
from macp_sdk.policy import (
    CommitmentRules,
    CounterProposalRules,
    ProposalAcceptanceRules,
    RejectionRules,
    build_proposal_policy,
)
from macp_sdk.proposal import ProposalProjection, ProposalSession

TARGET = os.environ["MACP"]
OPEN, RESOLVED, EXPIRED, SUSPENDED, CANCELLED = 1, 2, 3, 4, 5


def auth(name):
    return AuthConfig.for_dev_agent(name)


def client_of(name):
    return MacpClient(target=TARGET, allow_insecure=True, auth=auth(name))


def refused(code, say):
    try:
        say()
    except MacpAckError as err:
        assert err.failure.code == code, err
        assert err.failure.message, err
        return err
    raise AssertionError(f"accepted, want {code}")


def initialized():
    client = client_of("coordinator")
    said = client.initialize()
    assert said.selected_protocol_version == "1.0" and said.runtime_info.name == "parley"
    assert [m.mode for m in client.list_modes().modes] == ["macp.mode.proposal.v1"]
    return client


def seed():
    """The script of seeds/macp-proposal-mode.txt. Its text is run as it stands there, but for
    what the SDK itself refuses before anything is sent: plain text has to be allowed, and a
    sender= of another agent needs that agent's auth=, which is added to each call."""
    page = open(sys.argv[2], encoding="utf-8").read()
    blocks = page.split("Session helper", 1)[1].split("Projection queries", 1)
    scenario = page.split("Real-world scenario: multi-round negotiation", 1)[1].split("API Reference", 1)[0]
    start = blocks[0].strip()
    start = start.replace("secure=False,", "allow_insecure=True,").replace("127.0.0.1:50051", TARGET)
    names = {"AuthConfig": AuthConfig, "MacpClient": MacpClient}
    plain = ProposalSession._sender_for

    def sender_for(self, sender, *, auth=None):
        return plain(self, sender, auth=auth or AuthConfig.for_dev_agent(sender or "coordinator"))

    send = MacpClient.send

    def send_as(self, envelope, *, auth=None, **more):
        return send(self, envelope, auth=AuthConfig.for_dev_agent(envelope.sender), **more)

    ProposalSession._sender_for = sender_for
    MacpClient.send = send_as
    try:
        exec(start, names)  # noqa: S102
        session = names["session"]
        proj = session.proposal_projection
        assert session.metadata().metadata.state == RESOLVED
        assert proj.accepted_proposal() == "p2" and proj.is_committed and proj.phase == "Committed"
        assert proj.proposals["p2"].supersedes == "p1" and not proj.has_terminal_rejection()
        print(session.session_id)
        names["session"] = ProposalSession(client_of("vendor"))
        names["session"].start(intent="rounds", participants=["vendor", "client"], ttl_ms=60_000, sender="vendor")
        exec(scenario.strip(), names)  # noqa: S102
        proj = names["session"].proposal_projection
        assert proj.accepted_proposal() == "p3" and set(proj.live_proposals()) == {"p1", "p2", "p3"}
        names["session"].commit(action="contract.agreed", authority_scope="sales", reason="both accept", sender="vendor")
        assert proj.is_committed
    finally:
        ProposalSession._sender_for, MacpClient.send = plain, send


def happy():
    """As the SDK's own integration test has it: all accept, the coordinator too."""
    client = initialized()
    session = ProposalSession(client, auth=auth("coordinator"))
    assert session.start(intent="happy", participants=["coordinator", "buyer", "seller"], ttl_ms=30_000).ok
    assert session.propose("p1", "Standard Plan", summary="$100k", details=b"\x00\xff", tags=["a"], sender="seller", auth=auth("seller")).ok
    assert session.counter_propose("p2", "p1", "Counter Plan", summary="$80k", sender="buyer", auth=auth("buyer")).ok
    for name in ("seller", "buyer", "coordinator"):
        assert session.accept("p2", reason="agreed", sender=name, auth=auth(name)).ok
    ack = session.commit(action="contract.accepted", authority_scope="procurement", reason="all parties accepted p2")
    assert ack.ok and ack.session_state == RESOLVED
    proj = session.proposal_projection
    assert proj.accepted_proposal() == "p2" and proj.commitment is not None
    meta = session.metadata().metadata
    assert meta.state == RESOLVED and list(meta.participants) == ["coordinator", "buyer", "seller"]
    assert meta.initiator == "coordinator" and meta.mode_version == "1.0.0" and meta.policy_version == "policy.default"


def negative():
    client = initialized()
    session = ProposalSession(client, auth=auth("coordinator"))
    session.start(intent="negative", participants=["coordinator", "buyer", "seller"], ttl_ms=30_000)
    early = lambda: session.commit(action="contract.agreed", authority_scope="x", reason="early")  # noqa: E731
    refused("INVALID_ENVELOPE", early)
    refused("FORBIDDEN", lambda: session.propose("p1", "Spy", sender="spy", auth=auth("spy")))
    refused("INVALID_ENVELOPE", lambda: session.counter_propose("p2", "p9", "Counter", sender="buyer", auth=auth("buyer")))
    session.propose("p1", "Standard", sender="seller", auth=auth("seller"))
    refused("INVALID_ENVELOPE", lambda: session.propose("p1", "Again", sender="buyer", auth=auth("buyer")))
    refused("FORBIDDEN", lambda: session.withdraw("p1", sender="buyer", auth=auth("buyer")))
    session.accept("p1", sender="buyer", auth=auth("buyer"))
    refused("INVALID_ENVELOPE", early)
    refused("FORBIDDEN", lambda: session.commit(action="contract.agreed", authority_scope="x", reason="r", sender="buyer", auth=auth("buyer")))
    refused("SESSION_ALREADY_EXISTS", lambda: session.start(intent="again", participants=["coordinator", "buyer"], ttl_ms=30_000))
    try:
        session.propose("p5", "Of another", sender="seller")
        raise AssertionError("the SDK lets one agent speak as another")
    except MacpIdentityMismatchError:
        pass
    forged = build_envelope(mode=session.MODE, message_type="Accept", session_id=session.session_id, payload=b"", sender="seller")
    refused("UNAUTHENTICATED", lambda: client.send(forged))
    for change, code in (
        ({"macp_version": "2.0"}, "UNSUPPORTED_PROTOCOL_VERSION"), ({"mode": "macp.mode.task.v1"}, "MODE_NOT_SUPPORTED"),
        ({"session_id": "short"}, "INVALID_SESSION_ID"), ({"payload": b"\xff"}, "INVALID_ENVELOPE"), ({"message_type": "Bid"}, "INVALID_ENVELOPE"),
    ):
        bad = {"mode": session.MODE, "message_type": "Accept", "session_id": session.session_id, "payload": b"", "sender": "coordinator", **change}
        refused(code, lambda bad=bad: client.send(build_envelope(**bad)))
    assert session.cancel(reason="enough").session_state == CANCELLED
    assert session.metadata().metadata.state == CANCELLED
    refused("SESSION_NOT_OPEN", lambda: session.propose("p7", "Late", sender="seller", auth=auth("seller")))
    for name, asked in (("spy", session.session_id), ("coordinator", "3f2c1d4e-0000-4000-8000-000000000000")):
        try:
            client_of(name).get_session(asked)
            raise AssertionError("there is no such session for " + name)
        except grpc.RpcError as err:
            assert err.code() == grpc.StatusCode.NOT_FOUND and macp_error_code(err) == "SESSION_NOT_FOUND"
    large = refused("PAYLOAD_TOO_LARGE", lambda: ProposalSession(client).start(
        intent="x" * 400_000, participants=["coordinator", "buyer"], ttl_ms=30_000))
    assert large
    try:
        ProposalSession(client).start(intent="x" * 10_000_000, participants=["coordinator", "buyer"], ttl_ms=30_000)
        raise AssertionError("10 MB are accepted")
    except Exception as err:  # noqa: BLE001
        assert "RESOURCE_EXHAUSTED" in f"{getattr(err, 'code', '')} {err}", err


def reject():
    client = initialized()
    session = ProposalSession(client, auth=auth("coordinator"))
    session.start(intent="reject", participants=["coordinator", "buyer", "seller"], ttl_ms=30_000)
    session.propose("p1", "Standard", sender="seller", auth=auth("seller"))
    session.reject("p1", reason="too dear", sender="buyer", auth=auth("buyer"))
    assert not session.proposal_projection.has_terminal_rejection()
    session.withdraw("p1", sender="seller", auth=auth("seller"))
    session.propose("p2", "Cheaper", sender="seller", auth=auth("seller"))
    session.reject("p2", terminal=True, reason="never", sender="buyer", auth=auth("buyer"))
    refused("INVALID_ENVELOPE", lambda: session.accept("p2", sender="seller", auth=auth("seller")))
    ack = session.commit(action="proposal.rejected", authority_scope="x", reason="rejected for good")
    assert ack.ok and ack.session_state == RESOLVED
    proj = session.proposal_projection
    assert proj.has_terminal_rejection() and proj.is_terminally_rejected("p2") and proj.is_committed
    assert session.metadata().metadata.state == RESOLVED


def stream():
    """History, then live, and on from where one was; a projection is built of it."""
    client = initialized()
    session = ProposalSession(client, auth=auth("coordinator"))
    session.start(intent="stream", participants=["coordinator", "buyer", "seller"], ttl_ms=30_000)
    session.propose("p1", "Standard", details=b"\x00\xff", sender="seller", auth=auth("seller"))
    buyer, proj = client_of("buyer"), ProposalProjection()
    first = buyer.open_stream()
    first.send_subscribe(session.session_id)
    seen = [first.read(timeout=120), first.read(timeout=30)]
    assert [e.message_type for e in seen] == ["SessionStart", "Proposal"]
    first.cancel()
    session.counter_propose("p2", "p1", "Counter", sender="buyer", auth=auth("buyer"))
    second = buyer.open_stream()
    second.send_subscribe(session.session_id, after_sequence=2)
    seen.append(second.read(timeout=120))
    assert seen[-1].message_type == "CounterProposal"
    errors = []
    second.on_inline_error(errors.append)
    wrong = build_envelope(mode=session.MODE, message_type="Commitment", session_id=session.session_id, sender="buyer", payload=b"")
    second.send(wrong)
    accepts = session._accept_envelope("p2", reason="", sender="buyer", auth=auth("buyer"))
    second.send(accepts)  # what is sent on the stream comes back on it
    seen.append(second.read(timeout=120))
    assert seen[-1] == accepts, seen[-1]
    assert [(e.code, e.message_id) for e in errors] == [("INVALID_ENVELOPE", wrong.message_id)], errors
    live = client_of("seller").open_stream()
    live.send_subscribe(session.session_id, after_sequence=10_000_000)  # beyond the end: only what comes
    sellers = session._accept_envelope("p2", reason="", sender="seller", auth=auth("seller"))
    live.send(sellers)
    assert live.read(timeout=120) == sellers
    session.commit(action="contract.agreed", authority_scope="x", reason="both accept")
    seen += list(second.responses(timeout=120))  # it ends with the session
    assert [e.message_type for e in live.responses(timeout=120)] == ["Commitment"]
    for envelope in seen:
        proj.apply_envelope(envelope)
    assert proj.accepted_proposal() == "p2" and proj.is_committed and proj.proposals["p1"].title == "Standard"
    assert [e.sender for e in seen] == ["coordinator", "seller", "buyer", "buyer", "seller", "coordinator"]
    ack = client.send(accepts, auth=auth("buyer"))
    assert ack.duplicate, ack  # it was accepted before


def policy():
    client = initialized()
    strict = build_proposal_policy(
        "policy.strict", "one round, and any rejection ends it", acceptance=ProposalAcceptanceRules(criterion="counterparty"),
        counter_proposal=CounterProposalRules(max_rounds=1), rejection=RejectionRules(terminal_on_any_reject=True))
    assert client.register_policy(strict).ok
    assert not client.register_policy(strict).ok
    assert client.get_policy("policy.strict").policy_descriptor.rules == strict.rules
    assert [d.policy_id for d in client.list_policies().descriptors] == ["policy.default", "policy.strict"]
    refused("UNKNOWN_POLICY_VERSION", lambda: ProposalSession(client, policy_version="policy.none").start(
        intent="x", participants=["coordinator", "buyer"], ttl_ms=30_000))

    def begun(name):
        session = ProposalSession(client, policy_version=name)
        session.start(intent="policy", participants=["coordinator", "buyer"], ttl_ms=30_000)
        session.propose("p1", "Standard", sender="coordinator")
        return session

    session = begun("policy.strict")
    session.counter_propose("p2", "p1", "Counter", sender="buyer", auth=auth("buyer"))
    denied = refused("POLICY_DENIED", lambda: session.counter_propose("p3", "p2", "Counter again"))
    assert denied.reasons and denied.denials[0].code == "unspecified"
    session.accept("p2")
    assert session.commit(action="contract.agreed", authority_scope="x", reason="the counterparty accepts").ok
    session = begun("policy.strict")
    session.reject("p1", reason="no", sender="buyer", auth=auth("buyer"))
    refused("INVALID_ENVELOPE", lambda: session.accept("p1"))
    assert session.commit(action="proposal.rejected", authority_scope="x", reason="rejected").ok
    role = build_proposal_policy("policy.role", "the buyer commits", commitment=CommitmentRules(authority="designated_role", designated_roles=["buyer"]))
    assert client.register_policy(role).ok
    session = begun("policy.role")
    session.accept("p1")
    session.accept("p1", sender="buyer", auth=auth("buyer"))
    commit = lambda **who: session.commit(action="contract.agreed", authority_scope="x", reason="r", **who)  # noqa: E731
    refused("FORBIDDEN", commit)
    assert commit(sender="buyer", auth=auth("buyer")).ok
    assert client.unregister_policy("policy.role").ok


def suspended():
    """One side is an agent on NATS, which escalates while this runs: lines on stdin say when."""
    seller = os.environ["SELLER"]
    client = initialized()
    session = ProposalSession(client, auth=auth("coordinator"))
    session.start(intent="suspended", participants=["coordinator", "buyer", seller], ttl_ms=60_000)
    print(session.session_id, flush=True)
    sys.stdin.readline()  # the seller has joined, proposed and escalated
    assert session.metadata().metadata.state == SUSPENDED
    refused("SESSION_NOT_OPEN", lambda: session.accept("p1", sender="buyer", auth=auth("buyer")))
    print("suspended", flush=True)
    sys.stdin.readline()  # a human has decided
    assert session.metadata().metadata.state == OPEN
    assert session.accept("p1", sender="buyer", auth=auth("buyer")).ok
    print("resumed", flush=True)
    sys.stdin.readline()  # the seller has accepted its own proposal
    stream = client.open_stream()
    stream.send_subscribe(session.session_id)
    proj = ProposalProjection()
    for _ in range(4):
        proj.apply_envelope(stream.read(timeout=120))
    assert proj.accepted_proposal() == "p1" and proj.proposals["p1"].sender == seller
    assert session.commit(action="contract.agreed", authority_scope="x", reason="all accept").ok
    print("committed", flush=True)


{f.__name__: f for f in (seed, happy, negative, reject, stream, policy, suspended)}[sys.argv[1]]()
