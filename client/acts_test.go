package client_test

import (
	"errors"
	"testing"
	"time"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// A conversation in which each of the thirteen acts is accepted, and whose
// transcript is whole and genuine.
func TestEveryActIsAccepted(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	human := w.Client(alice)
	w.seed(gamma)
	buyer, seller := w.introduced(w.Client(alpha), w.Client(beta)) // PROPOSE, ACCEPT
	soon := time.Now().Add(time.Hour)
	depth := 1
	was := func(r client.Receipt, err error) client.Receipt { return must(r, err)(t) }

	p1 := was(buyer.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "data-exchange", ValidUntil: soon}))
	was(seller.Reject(w.Ctx, p1.ID, client.Rejection{}, client.Note("no"), client.Assess(map[string]int{"fit": 1})))
	p2 := was(buyer.Propose(w.Ctx, offer(5)))
	was(buyer.Withdraw(w.Ctx, p2.ID, client.Because("too low")))
	p3 := was(seller.Propose(w.Ctx, offer(9)))
	p4 := was(buyer.Counter(w.Ctx, p3.ID, offer(7), client.Because("budget")))
	q := was(seller.Query(w.Ctx, client.Query{Type: "volume", Subject: "events", Parameters: map[string]any{"unit": "s"}}))
	was(buyer.Inform(w.Ctx, performatives.Result, map[string]any{"query": q.ID, "events": 5000}))
	asked := was(seller.Clarify(w.Ctx, p4.ID, []client.Question{client.Ask("terms.price", "a month?", "yes", "no")},
		client.Note("before I say yes"), client.Assess(map[string]int{"fit": 2})))
	was(buyer.Answer(w.Ctx, asked.ID, map[string]any{"terms.price": "yes"}))
	was(buyer.Delegate(w.Ctx, gamma, client.Delegation{
		Scope: "review", Authority: client.Advisory, For: p4.ID, ValidUntil: soon, MaxDepth: &depth,
	}))
	was(seller.Accept(w.Ctx, p4.ID, client.Because("fine"), client.Note("deal")))
	e := was(buyer.Escalate(w.Ctx, client.Escalation{
		Reason: client.PolicyAmbiguous, Urgency: client.Critical, Context: map[string]any{"price": 7}, About: p4.ID,
	}))
	rule := client.Ruling{Decision: performatives.Guidance, Comment: "go on"}
	was(human.Session(buyer.ID()).Rule(w.Ctx, e.ID, rule))
	rule.Decision = performatives.Denied
	if _, err := human.Session(buyer.ID()).Rule(w.Ctx, e.ID, rule); !errors.Is(err, client.Refused(session.EscalationResolved)) {
		t.Errorf("another ruling: %v", err)
	}
	c := was(seller.Commit(w.Ctx, client.Commitment{
		For: p4.ID, Deadline: soon, Escrow: &performatives.Escrow{Amount: 7, Currency: "EUR"}, Penalties: "none",
		Obligations: []performatives.Obligation{{Party: beta, Action: "ingest", Deadline: &soon}},
	}, client.Because("agreed")))
	if c.State != session.Agreeing {
		t.Errorf("after COMMIT the session is %s", c.State)
	}
	if r := was(buyer.Accept(w.Ctx, c.ID)); r.State != session.Executing || r.ID != "" {
		t.Errorf("the commitment's acceptance is %+v", r)
	}
	was(buyer.Observe(w.Ctx, "latency", map[string]any{"ms": 3}))
	was(seller.Close(w.Ctx, client.Closing{Summary: "done", Outcome: performatives.Completed, Reason: "all is delivered"}))

	accepted := map[performatives.Performative]bool{}
	verifier := transcript.NewVerifier(w.Server.Broker.Command.Key(), transcript.Expect{Session: buyer.ID()})
	for _, entry := range must(buyer.Transcript(w.Ctx))(t) {
		accepted[entry.Message.Performative] = true
		for _, fault := range verifier.Add(entry.Bytes) {
			t.Error(fault)
		}
	}
	for _, fault := range verifier.End() {
		t.Error(fault)
	}
	for _, act := range performatives.All() {
		if !accepted[act] {
			t.Errorf("%s was not accepted", act)
		}
	}
}

// What a message is called by those that answer it, and what can be read of it.
func TestWhatAMessageSays(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	w.Register("human://widgets.co/bob") // without a decider nobody can escalate
	ours, theirs := w.introduced(w.Client(alpha), w.Client(beta))
	type terms struct {
		Price int `json:"price"`
	}
	for _, say := range []func() (client.Receipt, error){
		func() (client.Receipt, error) { return theirs.Propose(w.Ctx, offer(5)) },
		func() (client.Receipt, error) { return theirs.Query(w.Ctx, client.Query{Type: "t", Subject: "s"}) },
		func() (client.Receipt, error) { return theirs.Observe(w.Ctx, "s", nil) },
		func() (client.Receipt, error) {
			return theirs.Escalate(w.Ctx, client.Escalation{Reason: client.ConfidenceLow, Context: "?"})
		},
	} {
		r := must(say())(t)
		m := must(ours.Await(w.Ctx))(t)
		if m.Ref() != r.ID || m.State() != r.State || m.From() != beta || m.OnBehalfOf() != "" || m.Session().ID() != ours.ID() {
			t.Errorf("%s: called %q in state %s, from %s; the receipt is %+v", m.Act(), m.Ref(), m.State(), m.From(), r)
		}
		got, err := client.Terms[terms](m)
		if offer := m.Act() == performatives.Propose; offer != (err == nil) || offer && got.Price != 5 {
			t.Errorf("%s: the terms are %+v, %v", m.Act(), got, err)
		}
	}
}
