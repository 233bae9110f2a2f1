package adversary

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// logsIn is another connection of a principal.
func logsIn(p *testkit.Principal, how nats.Option) *nats.Conn {
	p.Helper()
	nc, err := p.Dial(how)
	testkit.Must(p, err)
	return nc
}

// TestStolenKey: a thief has alpha's seed, and is connected. A new key ends what the old one
// could do, at once and everywhere, and takes nothing from the record.
func TestStolenKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	copied, owner := *w.Principal(alpha), w.Principal(alpha)
	thief := &copied
	said := thief.Envelope(w.deal, testkit.Fact("before"))
	testkit.Accepted(t, thief.Submit(w.deal, said))
	held, eves := logsIn(thief, thief.Login()), logsIn(w.Principal(eve), w.Principal(eve).Login())
	token := userJWT(thief)
	heldByCreds := logsIn(thief, presents(token, testkit.LoginOf(t, thief.Key).Sign))
	heldByAlice := logsIn(w.Principal(alice), w.Principal(alice).Login())

	// While the key is good, the thief is alpha; what alpha is not, it is not either.
	w.harmless(func() {
		other := w.Principal(eve).Signer.Key()
		want(t, "another key for alpha", thief.Call(api.AgentRegister.Name, card(alpha, other)), session.Unauthorized)
		for name, by := range map[string]performatives.Signer{"signed by another": w.Principal(eve).Signer, "signed by the new key": w.Principal(beta).Signer} {
			want(t, "agent.rotate "+name, thief.Call(api.AgentRotate.Name, rotation(t, by, alpha, w.Principal(beta).Signer.Key())), session.SignatureInvalid)
		}
		want(t, "agent.rotate of beta", thief.Call(api.AgentRotate.Name, rotation(t, owner.Signer, beta, other)), session.Unauthorized)
		want(t, "agent.rotate to beta's key", thief.Call(api.AgentRotate.Name, rotation(t, owner.Signer, alpha, w.Principal(beta).Signer.Key())), session.Duplicate)
		want(t, "beta's envelope", thief.Submit(w.deal, w.Principal(beta).Envelope(w.deal, testkit.Fact("x"))), session.Unauthorized)
	})

	owner.SetKey(w.Register(alpha)) // by an operator
	testkit.Cut(t, held)
	testkit.Cut(t, heldByCreds)
	w.harmless(func() {
		if _, err := thief.Dial(thief.Login()); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("the old key logs in: %v", err)
		}
		if _, err := thief.Dial(presents(token, testkit.LoginOf(t, thief.Key).Sign)); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("the old key logs in with its .creds: %v", err)
		}
		want(t, "the old key signs", owner.Submit(w.deal, thief.Envelope(w.deal, testkit.Fact("x"))), session.SignatureInvalid)
		want(t, "what was accepted, again", owner.Submit(w.deal, said), session.SignatureInvalid)
	})
	w.Principal(alpha).Say(w.deal, testkit.Fact("after"))
	if faults := w.faults(w.entries(alpha, w.deal), transcript.Expect{Session: w.deal}); len(faults) > 0 {
		t.Errorf("with two keys of alpha the transcript has faults: %v", faults)
	}

	// Removed altogether.
	old := logsIn(owner, owner.Login())
	m := w.Operates().Request(api.OperatorCall(api.AgentRemove.Name), []byte(fmt.Sprintf(`{"agentId":%q}`, alpha)))
	if m.Header.Get(api.ErrorCodeHeader) != "" {
		t.Fatalf("%s", m.Data)
	}
	testkit.Cut(t, old)
	w.harmless(func() {
		if _, err := owner.Dial(owner.Login()); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("who is removed logs in: %v", err)
		}
		b := w.Principal(beta)
		next := testkit.NewSession()
		want(t, "inviting who is removed", b.Submit(next, b.Envelope(next, testkit.Invitation(alpha))), session.UnknownAgent)
	})
	if faults := w.faults(w.entries(beta, w.deal), transcript.Expect{Session: w.deal}); len(faults) > 0 {
		t.Errorf("after the removal the transcript has faults: %v", faults)
	}
	for name, l := range map[string]*nats.Conn{"eve": eves, "alice": heldByAlice} {
		if l.IsClosed() {
			t.Errorf("%s is cut off too", name)
		}
	}
}

// TestMaliciousDelegate: an agent that acts for another does more than it may, or goes on
// when its time is over (PROTOCOL.md §6).
func TestMaliciousDelegate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Principal(delta)
	grant := func(authority, reference string) string {
		return string(w.Principal(alpha).Say(w.deal, &performatives.DelegateBody{
			TargetAgent: delta, Scope: "law", Authority: authority, ReferenceID: reference,
		}).Message)
	}
	refuse := func(bodies map[string]performatives.Body, code session.Code) {
		w.Helper()
		w.harmless(func() {
			for name, body := range bodies {
				want(t, name, d.Submit(w.deal, d.Envelope(w.deal, body)), code)
			}
		}, delta)
	}
	passesOn := func(authority string) performatives.Body {
		return &performatives.DelegateBody{TargetAgent: eve, Scope: "law", Authority: authority}
	}
	binds := map[string]performatives.Body{
		"COMMIT": &performatives.CommitBody{CommitmentID: "c1", Terms: &performatives.CommitmentTerms{Obligations: []performatives.Obligation{{Party: alpha, Action: "pay"}}}},
		"CLOSE":  &performatives.CloseBody{Outcome: "completed"},
	}
	speaks := map[string]performatives.Body{
		"ACCEPT": &performatives.AcceptBody{ReferenceID: "p1"}, "PROPOSE": testkit.Offer("d1", 1),
		"REJECT":   &performatives.RejectBody{ReferenceID: "p1", Code: "unspecified", Reason: "no"},
		"COUNTER":  &performatives.CounterBody{ProposalID: "d2", ReferenceID: "p1", Terms: []byte(`{"price":1}`)},
		"DELEGATE": passesOn("advisory"),
	}

	limited := grant("limited", "")
	refuse(binds, session.AuthorityExceeded)
	refuse(speaks, session.AuthorityExceeded)
	w.Principal(delta).Say(w.deal, testkit.Fact("what it may"))
	w.Principal(alpha).Say(w.deal, &performatives.WithdrawBody{ReferenceID: limited})
	refuse(speaks, session.AuthorityExceeded)
	refuse(map[string]performatives.Body{
		"INFORM": testkit.Fact("too late"), "ACCEPT of the delegation": &performatives.AcceptBody{ReferenceID: limited},
	}, session.AuthorityExceeded)
	want(t, "reading on", d.Call(api.SessionMessages.Name, fmt.Sprintf(`{"sessionId":%q}`, w.deal)), session.AuthorityExceeded)

	w.Principal(beta).Say(w.deal, testkit.Offer("p2", 2))
	full := grant("full", "p1") // of this offer alone
	w.Principal(delta).Say(w.deal, testkit.Fact("here again"))
	refuse(binds, session.AuthorityExceeded)
	refuse(map[string]performatives.Body{
		"ACCEPT of another offer": &performatives.AcceptBody{ReferenceID: "p2"}, "PROPOSE": testkit.Offer("d3", 1),
		"DELEGATE of another offer": &performatives.DelegateBody{TargetAgent: eve, Scope: "law", Authority: "full", ReferenceID: "p2"},
	}, session.AuthorityExceeded)
	w.Principal(delta).Say(w.deal, passesOn("full"))
	w.Principal(eve).Submit(w.deal, w.Principal(eve).Envelope(w.deal, testkit.Fact("on its behalf")))
	w.Principal(alpha).Say(w.deal, &performatives.WithdrawBody{ReferenceID: full})
	w.harmless(func() { // and what came of it ends with it
		p := w.Principal(eve)
		want(t, "a delegate's delegate", p.Submit(w.deal, p.Envelope(w.deal, &performatives.AcceptBody{ReferenceID: "p1"})), session.AuthorityExceeded)
	})
	refuse(map[string]performatives.Body{"its own offer's ACCEPT": &performatives.AcceptBody{ReferenceID: "p1"}}, session.AuthorityExceeded)
}

// rotation asks for another key of a principal.
func rotation(t *testing.T, by performatives.Signer, a performatives.Agent, to performatives.Key) string {
	t.Helper()
	r := api.RotateKey{Agent: a, Key: to, Timestamp: time.Now().UTC().Format(time.RFC3339Nano)}
	data, err := r.SigningBytes()
	testkit.Must(t, err)
	r.Signature, err = performatives.SignBytes(by, data)
	testkit.Must(t, err)
	request, err := json.Marshal(r)
	testkit.Must(t, err)
	return string(request)
}
