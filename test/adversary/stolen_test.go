package adversary

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/transcript"
)

// A line is a connection and word of its end.
type line struct {
	*nats.Conn
	closed chan struct{}
}

func (p *person) line() line {
	p.Helper()
	return p.lineBy(p.login())
}

func (p *person) lineBy(how nats.Option) line {
	p.Helper()
	l := line{closed: make(chan struct{})}
	var err error
	l.Conn, err = p.dial(how, nats.ClosedHandler(func(*nats.Conn) { close(l.closed) }))
	must(p.TB, err)
	return l
}

// atOnce is how long a removal may take to count: two seconds, and what a machine that is
// busy with other tests adds.
const atOnce = 2*time.Second + 8*time.Second

// isCut waits until the server has closed the connection, at once.
func (w *world) isCut(l line) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), atOnce)
	defer cancel()
	select {
	case <-l.closed:
	case <-ctx.Done():
		w.Fatalf("the connection is still there after %s", atOnce)
	}
}

// TestStolenKey: a thief has alpha's seed, and is connected. A new key ends what the old one
// could do, at once and everywhere, and takes nothing from the record.
func TestStolenKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	thief, owner := w.people[alpha], w.people[alpha]
	said := thief.envelope(w.deal, fact("before"))
	accepted(t, thief.submits(w.deal, said))
	held, eves := thief.line(), w.people[eve].line()
	token := thief.userJWT()
	heldByCreds := thief.lineBy(presents(token, thief.pair.Sign))
	heldByAlice := w.people[alice].line()

	// While the key is good, the thief is alpha; what alpha is not, it is not either.
	w.harmless(func() {
		other := w.people[eve].signer.Key()
		want(t, "another key for alpha", thief.calls(api.AgentRegister.Name, card(alpha, other)), session.Unauthorized)
		for name, by := range map[string]performatives.Signer{"signed by another": w.people[eve].signer, "signed by the new key": w.people[beta].signer} {
			want(t, "agent.rotate "+name, thief.calls(api.AgentRotate.Name, rotation(t, by, alpha, w.people[beta].signer.Key())), session.SignatureInvalid)
		}
		want(t, "agent.rotate of beta", thief.calls(api.AgentRotate.Name, rotation(t, owner.signer, beta, other)), session.Unauthorized)
		want(t, "agent.rotate to beta's key", thief.calls(api.AgentRotate.Name, rotation(t, owner.signer, alpha, w.people[beta].signer.Key())), session.Duplicate)
		want(t, "beta's envelope", thief.submits(w.deal, w.people[beta].envelope(w.deal, fact("x"))), session.Unauthorized)
	})

	key := w.registers(alpha) // an operator gives alpha a new key
	w.people[alpha] = key
	w.isCut(held)
	w.isCut(heldByCreds)
	w.harmless(func() {
		if _, err := owner.dial(owner.login()); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("the old key logs in: %v", err)
		}
		if _, err := owner.dial(presents(token, owner.pair.Sign)); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("the old key logs in with its .creds: %v", err)
		}
		want(t, "the old key signs", key.submits(w.deal, owner.envelope(w.deal, fact("x"))), session.SignatureInvalid)
		want(t, "what was accepted, again", key.submits(w.deal, said), session.SignatureInvalid)
	})
	w.says(alpha, w.deal, fact("after"))
	if faults := w.faults(w.entries(alpha, w.deal), transcript.Expect{Session: w.deal}); len(faults) > 0 {
		t.Errorf("with two keys of alpha the transcript has faults: %v", faults)
	}

	// Removed altogether.
	old, operator := key.line(), w.operator()
	w.people[alpha] = w.people[beta] // who looks at the deal from here on
	m := operator.asks(api.OperatorCall(api.AgentRemove.Name), []byte(fmt.Sprintf(`{"agentId":%q}`, alpha)))
	if m.Header.Get(api.ErrorCodeHeader) != "" {
		t.Fatalf("%s", m.Data)
	}
	w.isCut(old)
	w.harmless(func() {
		if _, err := key.dial(key.login()); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("who is removed logs in: %v", err)
		}
		b := w.people[beta]
		next := newSession()
		want(t, "inviting who is removed", b.submits(next, b.envelope(next, invitation(alpha))), session.UnknownAgent)
	})
	if faults := w.faults(w.entries(beta, w.deal), transcript.Expect{Session: w.deal}); len(faults) > 0 {
		t.Errorf("after the removal the transcript has faults: %v", faults)
	}
	for name, l := range map[string]line{"eve": eves, "alice": heldByAlice} {
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
	d := w.people[delta]
	grant := func(authority, reference string) string {
		return string(w.says(alpha, w.deal, &performatives.DelegateBody{
			TargetAgent: delta, Scope: "law", Authority: authority, ReferenceID: reference,
		}).Message)
	}
	refuse := func(bodies map[string]performatives.Body, code session.Code) {
		w.Helper()
		w.harmless(func() {
			for name, body := range bodies {
				want(t, name, d.submits(w.deal, d.envelope(w.deal, body)), code)
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
		"ACCEPT": &performatives.AcceptBody{ReferenceID: "p1"}, "PROPOSE": offer("d1", 1),
		"REJECT":   &performatives.RejectBody{ReferenceID: "p1", Code: "unspecified", Reason: "no"},
		"COUNTER":  &performatives.CounterBody{ProposalID: "d2", ReferenceID: "p1", Terms: []byte(`{"price":1}`)},
		"DELEGATE": passesOn("advisory"),
	}

	limited := grant("limited", "")
	refuse(binds, session.AuthorityExceeded)
	refuse(speaks, session.AuthorityExceeded)
	w.says(delta, w.deal, fact("what it may"))
	w.says(alpha, w.deal, &performatives.WithdrawBody{ReferenceID: limited})
	refuse(speaks, session.AuthorityExceeded)
	refuse(map[string]performatives.Body{
		"INFORM": fact("too late"), "ACCEPT of the delegation": &performatives.AcceptBody{ReferenceID: limited},
	}, session.AuthorityExceeded)
	want(t, "reading on", d.calls(api.SessionMessages.Name, fmt.Sprintf(`{"sessionId":%q}`, w.deal)), session.AuthorityExceeded)

	w.says(beta, w.deal, offer("p2", 2))
	full := grant("full", "p1") // of this offer alone
	w.says(delta, w.deal, fact("here again"))
	refuse(binds, session.AuthorityExceeded)
	refuse(map[string]performatives.Body{
		"ACCEPT of another offer": &performatives.AcceptBody{ReferenceID: "p2"}, "PROPOSE": offer("d3", 1),
		"DELEGATE of another offer": &performatives.DelegateBody{TargetAgent: eve, Scope: "law", Authority: "full", ReferenceID: "p2"},
	}, session.AuthorityExceeded)
	w.says(delta, w.deal, passesOn("full"))
	w.people[eve].submits(w.deal, w.people[eve].envelope(w.deal, fact("on its behalf")))
	w.says(alpha, w.deal, &performatives.WithdrawBody{ReferenceID: full})
	w.harmless(func() { // and what came of it ends with it
		p := w.people[eve]
		want(t, "a delegate's delegate", p.submits(w.deal, p.envelope(w.deal, &performatives.AcceptBody{ReferenceID: "p1"})), session.AuthorityExceeded)
	})
	refuse(map[string]performatives.Body{"its own offer's ACCEPT": &performatives.AcceptBody{ReferenceID: "p1"}}, session.AuthorityExceeded)
}

// rotation asks for another key of a principal.
func rotation(t *testing.T, by performatives.Signer, a performatives.Agent, to performatives.Key) string {
	t.Helper()
	r := api.RotateKey{Agent: a, Key: to, Timestamp: time.Now().UTC().Format(time.RFC3339Nano)}
	data, err := r.SigningBytes()
	must(t, err)
	r.Signature, err = performatives.SignBytes(by, data)
	must(t, err)
	request, err := json.Marshal(r)
	must(t, err)
	return string(request)
}
