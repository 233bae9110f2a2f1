package approvals_test

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A level that does not answer is reminded, then the next one is asked, by the
// durable timer; at the end of the chain the session fails closed.
func TestChain(t *testing.T) {
	t.Parallel()
	o := newOffice(t, chain(3*time.Second, 5*time.Second, 1500*time.Millisecond), nil)
	e := o.asks("15000")
	if _, err := o.rules(chief, e, performatives.Approved); testkit.CodeOf(err) != session.AuthorityExceeded {
		t.Errorf("before its turn: %v", err)
	}
	if _, err := o.rules(anna, e, performatives.Approved); testkit.CodeOf(err) != session.Unauthorized {
		t.Errorf("who is not asked: %v", err)
	}
	up := o.until(chief, e, func(i api.EscalationItem) bool { return i.Route.Level == 1 && i.Case.Actions > 2 })
	if up.Route.Rule != "all" || up.Route.Levels[1].Name != "board" || !up.You.Decide {
		t.Errorf("%+v %+v", up.Route, up.You)
	}
	over := o.until(alice, e, func(i api.EscalationItem) bool { return i.Status == escalation.EndExpired })
	if over.You.Decide {
		t.Errorf("%+v", over.You)
	}
	got := slices.DeleteFunc(kindsOf(o.history(e)), func(k escalation.Kind) bool { return k == escalation.Viewed })
	if want := []escalation.Kind{escalation.Opened, escalation.Reminded, escalation.Reescalated, escalation.Reminded, escalation.Ended}; !slices.Equal(got, want) {
		t.Errorf("the history is %v, want %v", got, want)
	}
	view, err := calls[api.SessionView](o, beta, api.SessionGet.Name, api.SessionRef{Session: o.id})
	if err != nil || view.State != session.Failed || view.Closing != session.EscalationExpired {
		t.Errorf("%+v %v", view, err)
	}
}

// PROTOCOL.md §7: an escalation that nobody answers ends the session, unless something is due in it.
func TestIfUnanswered(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	e := o.asks("150")
	if then := o.item(alice, e).IfUnanswered.Then; !strings.HasPrefix(then, "the session fails") {
		t.Errorf("while the two negotiate: %s", then)
	}
	_, err := o.rules(alice, e, performatives.Approved)
	testkit.Must(t, err)
	o.accepted(alpha, &performatives.AcceptBody{ReferenceID: "p1"})
	due := time.Now().Add(time.Hour)
	o.accepted(beta, &performatives.CommitBody{CommitmentID: "k1", ReferenceID: "p1", Terms: &performatives.CommitmentTerms{
		Obligations: []performatives.Obligation{{Party: beta, Action: "deliver", Deadline: &due}},
	}})
	o.accepted(alpha, &performatives.AcceptBody{ReferenceID: "k1"})
	again := o.accepted(alpha, &performatives.EscalateBody{Reason: "policy-ambiguous", Urgency: "high", Context: jsontext.Value(`"what is a box?"`)})
	if then := o.item(alice, escalation.ID(again.Message)).IfUnanswered.Then; !strings.HasPrefix(then, "nothing is decided, and the session goes on") {
		t.Errorf("while something is due: %s", then)
	}
}

// Transferred up the chain, it is the board's at once.
func TestTransferUpTheChain(t *testing.T) {
	t.Parallel()
	o := newOffice(t, chain(time.Hour, 2*time.Hour, time.Minute), nil)
	e := o.asks("15000")
	o.refused(session.AuthorityExceeded, chief, api.EscalationTransfer.Name, api.TransferEscalation{Escalation: string(e), Level: "board"})
	moved := o.does(alice, api.EscalationTransfer.Name, api.TransferEscalation{Escalation: string(e), Level: "board", Reason: "above me"})
	if moved.Route.Level != 1 {
		t.Errorf("%+v", moved.Route)
	}
	if accepted, err := o.rules(chief, e, performatives.Denied, asSeen(o.item(chief, e))); err != nil || accepted.State != session.Conversing {
		t.Errorf("%+v %v", accepted, err)
	}
}

// Two of three approve within their ceilings, and what they allow is enforced.
func TestQuorumAndCeilings(t *testing.T) {
	t.Parallel()
	usd := func(n float64) performatives.Limit { return performatives.Limit{Currency: "USD", MaxAmount: n} }
	o := newOffice(t, &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{"acme.com": {
		Rules: []*escalation.Rule{{Match: escalation.Match{Amount: &escalation.Range{Min: 10000}}, Asked: escalation.Asked{Quorum: 2}}},
	}}}, map[performatives.Agent]performatives.Limit{alice: usd(15000), anna: usd(9000)})
	e := o.asks("15000")
	if item := o.item(alice, e); item.Route.Levels[0].Quorum != 2 || slices.ContainsFunc(item.Approvers, func(a api.Approver) bool { return a.Enough != (a.Agent != anna) }) {
		t.Errorf("%+v %+v", item.Route, item.Approvers)
	}
	if _, err := o.rules(anna, e, performatives.Approved); testkit.CodeOf(err) != session.AuthorityExceeded {
		t.Errorf("above anna's ceiling: %v", err)
	}
	if accepted, err := o.rules(alice, e, performatives.Approved); err != nil || accepted.State != session.Escalated {
		t.Errorf("the first: %+v %v", accepted, err)
	}
	if item := o.item(chief, e); item.Route.Levels[0].Approved != 1 || item.Revision != 1 {
		t.Errorf("%+v", item)
	}
	if accepted, err := o.rules(chief, e, performatives.Approved, asSeen(o.item(chief, e))); err != nil || accepted.State != session.Conversing {
		t.Fatalf("the second: %+v %v", accepted, err)
	}
	o.accepted(alpha, &performatives.AcceptBody{ReferenceID: "p1"})
	if _, err := o.says(alpha, &performatives.CommitBody{
		CommitmentID: "k1", ReferenceID: "p1", Escrow: &performatives.Escrow{Amount: 20000, Currency: "USD"},
		Terms: &performatives.CommitmentTerms{Obligations: []performatives.Obligation{{Party: alpha, Action: "pay"}}},
	}); testkit.CodeOf(err) != session.AuthorityExceeded {
		t.Errorf("above the ruling: %v", err)
	}
	if e := o.asks("9999"); len(o.item(anna, e).Route.Levels[0].Approvers) != 0 || o.item(anna, e).Route.Levels[0].Quorum != 1 {
		t.Errorf("what no rule matches: %+v", o.item(anna, e).Route)
	}
}

// The broker is gone right after a decision was entered: it is decided, the
// session goes on, and the inbox says so when a broker is back.
func TestGoneAfterDecision(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"after the append", "after the answer"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, nil, nil)
			e := o.asks("15000")
			o.until(alice, e, func(i api.EscalationItem) bool { return i.Case.Actions > 0 })
			stopped := make(chan struct{})
			var once sync.Once
			o.b.Broker.Command.AtFailpoints(func(at string) {
				if at == point {
					once.Do(func() {
						close(stopped)
						runtime.Goexit()
					})
				}
			})
			decision := o.envelope(alice, &performatives.InformBody{
				Type: performatives.Resolution, Data: jsontext.Value(`{"escalationId":"` + string(e) + `","decision":"approved"}`),
			})
			go o.b.Broker.Gateway.SubmitAs(t.Context(), alice, o.id, decision) //nolint:errcheck // nobody may answer
			<-stopped
			o.b.Crash()
			o.b.Up()
			item := o.until(alice, e, func(i api.EscalationItem) bool { return i.Status == performatives.Approved && i.Case.Actions == 3 })
			if item.DecidedBy != alice {
				t.Errorf("%+v", item)
			}
			if accepted := o.accepted(alpha, &performatives.AcceptBody{ReferenceID: "p1"}); accepted.State != session.Conversing {
				t.Errorf("%+v", accepted)
			}
		})
	}
}
