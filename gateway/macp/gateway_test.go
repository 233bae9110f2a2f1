package macpgateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	buyer  = performatives.Agent("agent://acme.com/buyer")
	seller = performatives.Agent("agent://widgets.co/seller")
	spy    = performatives.Agent("agent://other.io/spy")
	human  = performatives.Agent("human://widgets.co/ann")
)

// hosts adds a hosted agent and a token for it; names are the token's macp_sender.
func (w *world) hosts(card api.Card, name string, q api.AddToken) {
	w.Helper()
	_, err := w.OperatorClient().AddHosted(w.Ctx, card)
	testkit.Must(w, err)
	q.Agent = card.Agent
	made, err := w.OperatorClient().AddToken(w.Ctx, q)
	testkit.Must(w, err)
	w.bearers[name] = made.Token
}

func (w *world) is(a *pb.Ack, want string) {
	w.Helper()
	if got := answered(a); got != want {
		w.Errorf("answered %s %s, want %s", got, a.GetError().GetMessage(), want)
	}
}

func (w *world) state(who, session string) pb.SessionState {
	w.Helper()
	got, err := w.GetSession(w.as(who), &pb.GetSessionRequest{SessionId: sessionID(session)})
	testkit.Must(w, err)
	return got.GetMetadata().GetState()
}

// GATEWAYS.md G8: senders are hosted principals by the macp_sender of a token or of a card, or by
// their URI. Who has macp in its card has accepted SessionStart in advance; others accept as ever.
func TestHosted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	w.hosts(api.Card{Agent: buyer, MACP: true}, "the buyer", api.AddToken{Sender: "the buyer"})
	w.hosts(api.Card{Agent: seller, MACP: true, MACPSender: "the seller"}, "the seller", api.AddToken{})
	w.hosts(api.Card{Agent: spy, MACP: true}, string(spy), api.AddToken{})
	own := w.Principal("agent://acme.com/own", func(c *api.Card) { c.MACP = true })
	w.starts("the buyer", "s1", "the buyer", string(seller), string(own.Agent))
	w.is(w.says("the buyer", "Proposal", "s1", `{"proposalId":"p1","title":"A"}`), "SESSION_NOT_OPEN") // one signs for itself
	id := w.parleyID(own.Agent)
	entries, err := w.Client(own.Agent).Transcript(w.Ctx, id)
	testkit.Must(t, err)
	if !strings.Contains(string(entries[1].Message.RawBody), `"inAdvance":true`) || entries[1].Message.Sender != seller {
		t.Errorf("the seller's acceptance of what it did not see is %s", entries[1].Message.RawBody)
	}
	own.Say(id, &performatives.AcceptBody{ReferenceID: "invitation"})
	w.must("the seller", "Proposal", "s1", `{"proposalId":"p1","title":"A"}`)
	w.must("the seller", "Accept", "s1", `{"proposalId":"p1"}`)
	own.Say(id, &performatives.AcceptBody{ReferenceID: "p1", Reason: "fine"})
	w.must("the buyer", "Commitment", "s1", `{"commitmentId":"c1","action":"a","authorityScope":"s","reason":"r","outcomePositive":true,`+versions+`}`)
	var senders []string
	for _, e := range w.reads("the buyer", sessionID("s1"), 0, -1) {
		senders = append(senders, e.GetSender())
	}
	if want := []string{"the buyer", string(seller), string(seller), string(own.Agent), "the buyer"}; !slices.Equal(senders, want) {
		t.Errorf("they are called %q, want %q", senders, want)
	}
	for _, asked := range []string{string(id), sessionID("s1"), sessionID("none")} {
		if _, err := w.GetSession(w.as(string(spy)), &pb.GetSessionRequest{SessionId: asked}); status.Code(err) != codes.NotFound {
			t.Errorf("an outsider who asks for %s gets %v", asked, err)
		}
	}
	_, err = w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: spy, Sender: "the buyer"})
	if err == nil {
		t.Error("two principals have one macp_sender")
	}
	if _, err = w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: "agent://other.io/mole", MACPSender: "the buyer"}); !errors.Is(err, &session.Refusal{Code: session.Duplicate}) {
		t.Errorf("a card has the macp_sender of another's token: %v", err)
	}
	w.is(w.says("the buyer", "SessionStart", "s2", `{"participants":["the buyer","nobody"],"ttlMs":"1000",`+versions+`}`), "INVALID_ENVELOPE")
}

// parleyID is the one session of an agent.
func (w *world) parleyID(a performatives.Agent) performatives.SessionID {
	w.Helper()
	list, err := client.Do(w.Ctx, w.Client(a), api.SessionList, api.ListSessions{})
	testkit.Must(w, err)
	if len(list.Sessions) != 1 {
		w.Fatalf("%s has %d sessions", a, len(list.Sessions))
	}
	return list.Sessions[0].Session
}

// A token that is missing, wrong, expired, read-only or another's says nothing.
func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	w.hosts(api.Card{Agent: buyer, MACP: true}, string(buyer), api.AddToken{})
	w.hosts(api.Card{Agent: seller, MACP: true}, string(seller), api.AddToken{})
	w.hosts(api.Card{Agent: buyer, MACP: true}, "reader", api.AddToken{ReadOnly: true})
	w.starts(string(buyer), "s1", string(buyer), string(seller))
	w.bearers["forged"], w.bearers["none"] = strings.Replace(w.bearers[string(buyer)], "_", "_a", 1), ""
	for _, bad := range []string{"forged", "none", "plain"} {
		e := w.envelope("", "Proposal", "s1", `{"proposalId":"p1","title":"A"}`)
		w.is(w.sends(bad, e), "UNAUTHENTICATED")
		var trailer metadata.MD
		_, err := w.GetSession(w.as(bad), &pb.GetSessionRequest{SessionId: sessionID("s1")}, grpc.Trailer(&trailer))
		if got := failed(err, trailer); got != "Unauthenticated UNAUTHENTICATED" {
			t.Errorf("%s: %s", bad, got)
		}
	}
	w.is(w.sends(string(seller), w.envelope(string(buyer), "Proposal", "s1", `{"proposalId":"p1","title":"A"}`)), "UNAUTHENTICATED")
	w.is(w.sends("reader", w.envelope("", "Proposal", "s1", `{"proposalId":"p1","title":"A"}`)), "FORBIDDEN")
	if got := w.state("reader", "s1"); got != pb.SessionState_SESSION_STATE_OPEN {
		t.Errorf("who may read sees %s", got)
	}
}

// What is sent again is answered with its first acceptance, and other content under its
// message_id is refused; also after a restart, which the names of sessions survive.
func TestAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{Dev: true})
	first := w.envelope("a", "SessionStart", "s1", `{"participants":["a","b"],"ttlMs":"60000",`+versions+`}`)
	w.is(w.sends("a", first), "ok OPEN")
	w.is(w.sends("a", first), "ok OPEN duplicate")
	e := w.envelope("b", "Proposal", "s1", `{"proposalId":"p1","title":"A"}`)
	w.is(w.sends("b", e), "ok OPEN")
	w.is(w.sends("b", e), "ok OPEN duplicate")
	w.Down()
	w.Up()
	w.conn = w.dial()
	w.MACPRuntimeServiceClient = pb.NewMACPRuntimeServiceClient(w.conn)
	w.is(w.sends("a", first), "ok OPEN duplicate")
	w.is(w.sends("b", e), "ok OPEN duplicate")
	other := w.envelope("b", "Proposal", "s1", `{"proposalId":"p2","title":"B"}`)
	other.MessageId = e.GetMessageId()
	w.is(w.sends("b", other), "DUPLICATE_MESSAGE")
	got := w.reads("a", sessionID("s1"), 1, 1)
	if !proto.Equal(got[0], e) {
		t.Errorf("what was sent comes back as %v", got[0])
	}
}

// An agent on NATS escalates: the session is SUSPENDED, and nothing is accepted before a human has decided.
func TestSuspended(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{Dev: true})
	onNATS, ann := w.Principal(seller), w.Principal(human)
	w.starts("a", "s1", "a", string(seller)) // whom MACP names first, and so meets
	id := w.parleyID(seller)
	onNATS.Say(id, testkit.Offer("p1", 7))
	asked := onNATS.Say(id, &performatives.EscalateBody{Reason: "authority-limit", Urgency: "high", Context: []byte(`"dear"`)})
	if got := w.state("a", "s1"); got != pb.SessionState_SESSION_STATE_SUSPENDED {
		t.Errorf("it is %s", got)
	}
	w.is(w.says("a", "Accept", "s1", `{"proposalId":"p1"}`), "SESSION_NOT_OPEN SUSPENDED")
	ann.Say(id, testkit.Ruling(asked.Message, "approved"))
	w.must("a", "Accept", "s1", `{"proposalId":"p1"}`)
	p := &pb.ProposalPayload{}
	testkit.Must(t, proto.Unmarshal(w.reads("a", sessionID("s1"), 1, 1)[0].GetPayload(), p))
	if want := (&pb.ProposalPayload{ProposalId: "p1", Title: "support p1", Details: []byte(`{"price":7}`)}); !proto.Equal(p, want) {
		t.Errorf("the proposal is %v, want %v", p, want)
	}
}

// MACP's bytes are believed as far as the act says the same: they come from its sender.
func TestForged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{Dev: true})
	onNATS := w.Principal(seller)
	w.starts("a", "s1", "a", string(seller))
	id := w.parleyID(seller)
	w.must("a", "Proposal", "s1", `{"proposalId":"p1","title":"A"}`)
	lie := w.envelope(string(seller), "Accept", "s1", `{"proposalId":"p1"}`)
	data, err := proto.Marshal(lie)
	testkit.Must(t, err)
	onNATS.Say(id, &performatives.RejectBody{ReferenceID: "p1", Code: "unspecified", Reason: "no"}, func(d *performatives.Draft) {
		d.Context = append(d.Context, fmt.Appendf(nil, `{"macp":%q}`, base64Of(data)))
	})
	if got := w.reads("a", sessionID("s1"), 2, 1)[0]; got.GetMessageType() != "Reject" {
		t.Errorf("a REJECT that pretends to be an Accept is %v", got)
	}
}

// A thousand clients wait, some go away in between, and all others read what comes.
func TestWaiting(t *testing.T) {
	t.Parallel()
	clients := 1000
	if testing.Short() {
		clients = 100
	}
	w := newWorld(t, testkit.Options{Dev: true})
	w.starts("a", "s1", "a", "b")
	ctx, leave := context.WithCancel(w.as("b"))
	var waiting []grpc.BidiStreamingClient[pb.StreamSessionRequest, pb.StreamSessionResponse]
	for i := range clients {
		if i%50 == 0 {
			w.MACPRuntimeServiceClient = pb.NewMACPRuntimeServiceClient(w.dial())
		}
		within := w.as("b")
		if i%10 == 0 {
			within = ctx
		}
		s, err := w.StreamSession(within)
		testkit.Must(t, err)
		testkit.Must(t, s.Send(&pb.StreamSessionRequest{SubscribeSessionId: sessionID("s1")}))
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
		if i%10 != 0 {
			waiting = append(waiting, s)
		}
	}
	leave()
	w.must("b", "Proposal", "s1", `{"proposalId":"p1","title":"A"}`)
	for _, s := range waiting {
		if r, err := s.Recv(); err != nil || r.GetEnvelope().GetMessageType() != "Proposal" {
			t.Fatalf("a client reads %v, %v", r, err)
		}
	}
}

// MACP is served with the certificate of the other listeners, and not in plain text.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	cert, key := ca.Issue("broker")
	w := newWorld(t, testkit.Options{Dev: true, TLS: server.TLS{Cert: cert, Key: key}})
	if _, err := w.ListModes(w.as("a"), &pb.ListModesRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("in plain text: %v", err)
	}
	trusts, err := credentials.NewClientTLSFromFile(ca.File, "127.0.0.1")
	testkit.Must(t, err)
	conn, err := grpc.NewClient(w.MACPAddr, grpc.WithTransportCredentials(trusts))
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	w.MACPRuntimeServiceClient = pb.NewMACPRuntimeServiceClient(conn)
	w.starts("a", "s1", "a", "b")
	w.reads("b", sessionID("s1"), 0, 1)
}

// A stream says what is wrong with a message, and goes on; a broker that stops ends it.
func TestStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{Dev: true})
	w.starts("a", "s1", "a", "b")
	s, err := w.StreamSession(w.as("b"))
	testkit.Must(t, err)
	says := func(q *pb.StreamSessionRequest, want string) {
		t.Helper()
		testkit.Must(t, s.Send(q))
		r, err := s.Recv()
		testkit.Must(t, err)
		if got := r.GetError().GetCode() + r.GetEnvelope().GetMessageType(); got != want {
			t.Errorf("%v is answered %v, want %s", q, r, want)
		}
	}
	says(&pb.StreamSessionRequest{}, "INVALID_ENVELOPE")
	says(&pb.StreamSessionRequest{SubscribeSessionId: sessionID("none")}, "SESSION_NOT_FOUND")
	says(&pb.StreamSessionRequest{Envelope: w.envelope("b", "Proposal", "s1", `{"proposalId":"p1","title":"A"}`)}, "Proposal")
	says(&pb.StreamSessionRequest{Envelope: w.envelope("b", "Accept", "s1", `{"proposalId":"p9"}`)}, "INVALID_ENVELOPE")
	says(&pb.StreamSessionRequest{Envelope: w.envelope("b", "Accept", "s2", `{"proposalId":"p1"}`)}, "INVALID_ENVELOPE")
	says(&pb.StreamSessionRequest{SubscribeSessionId: sessionID("s1"), AfterSequence: 1}, "Proposal")
	w.Down()
	if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream of a broker that stops ends with %v", err)
	}
}
