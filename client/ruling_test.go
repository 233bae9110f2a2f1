package client_test

import (
	"errors"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// TestApprovalIsOfWhatWasShown: PROTOCOL.md §7. An approval allows exactly the terms at stake
// unless it sets bounds, or says that it sets none.
func TestApprovalIsOfWhatWasShown(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	w.seed(alice)
	human, buys, sells := w.Client(alice), w.Client(alpha), w.Client(beta)
	plan := client.Proposal{ID: "p1", Type: "service-agreement", Subject: "support", Terms: map[string]any{"price": 9, "currency": "EUR", "sla": "99.9"}}
	most := 9.0
	for name, c := range map[string]struct {
		ruling  client.Ruling
		offered bool
		exactly bool
		bound   bool
	}{
		"by default exactly the terms":       {client.Ruling{Decision: performatives.Approved}, true, true, true},
		"also with a scope":                  {client.Ruling{Decision: performatives.Approved, Authority: &performatives.RulingsAuthority{Scope: performatives.ThreadScope}}, true, true, true},
		"bounds leave other terms free":      {client.Ruling{Decision: performatives.Approved, Authority: &performatives.RulingsAuthority{MaxAmount: &most, Currency: "EUR"}}, true, false, true},
		"no bound where that is said":        {client.Ruling{Decision: performatives.Approved, Unbounded: true}, true, false, false},
		"no bound where nothing is at stake": {client.Ruling{Decision: performatives.Approved}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			buyer, seller := w.introduced(buys, sells)
			ask := client.Escalation{Reason: client.PolicyAmbiguous, Context: "may I?"}
			if c.offered {
				must(seller.Propose(w.Ctx, plan))(t)
				ask.About = plan.ID
			}
			asked := must(buyer.Escalate(w.Ctx, ask))(t)
			item := must(human.Escalation(w.Ctx, asked.ID))(t)
			must(human.Session(buyer.ID()).Rule(w.Ctx, asked.ID, c.ruling))(t)
			view := must(buyer.View(w.Ctx))(t)
			switch {
			case len(view.Authorities) == 0 && c.bound, len(view.Authorities) > 0 && !c.bound:
				t.Fatalf("in force is %+v", view.Authorities)
			case c.bound && (view.Authorities[0].TermsHash == item.TermsHash) != c.exactly:
				t.Errorf("in force is %+v of an item %+v", view.Authorities[0], item.TermsHash)
			}
			if !c.offered {
				return
			}
			worse := client.Proposal{Terms: map[string]any{"price": 9, "currency": "EUR", "sla": "none"}}
			_, err := buyer.Counter(w.Ctx, plan.ID, worse)
			if refused := errors.Is(err, client.Refused(session.AuthorityExceeded)); refused != c.exactly {
				t.Errorf("a COUNTER with another SLA: %v", err)
			}
			if c.exactly {
				must(buyer.Accept(w.Ctx, plan.ID))(t)
			}
		})
	}
}

// TestApprovalOfAnEarlierView is refused, and decides nothing.
func TestApprovalOfAnEarlierView(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	w.seed(alice)
	human := w.Client(alice)
	buyer, seller := w.introduced(w.Client(alpha), w.Client(beta))
	p := must(seller.Propose(w.Ctx, offer(9)))(t)
	asked := must(buyer.Escalate(w.Ctx, client.Escalation{Reason: client.PolicyAmbiguous, Context: "may I?", About: p.ID}))(t)
	seen := must(human.Escalation(w.Ctx, asked.ID))(t)
	if _, err := client.Do(w.Ctx, human, api.EscalationComment, api.CommentEscalation{Escalation: asked.ID, Text: "wait"}); err != nil {
		t.Fatal(err)
	}
	ruling := client.Ruling{Decision: performatives.Approved, On: &seen}
	if _, err := human.Session(buyer.ID()).Rule(w.Ctx, asked.ID, ruling); !errors.Is(err, client.Refused(session.ChainConflict)) {
		t.Fatalf("an approval of an earlier view: %v", err)
	}
	now := must(human.Escalation(w.Ctx, asked.ID))(t)
	if now.Status != "open" || len(now.Votes) != 0 {
		t.Fatalf("it decided something: %+v", now)
	}
	ruling.On = &now
	must(human.Session(buyer.ID()).Rule(w.Ctx, asked.ID, ruling))(t)
}
