package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	ruling "github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const alice = performatives.Agent("human://acme.com/alice")

// A ruling that is recorded is a success, also if nobody tells what it has led to.
func TestRulingIsShown(t *testing.T) {
	t.Parallel()
	var item api.EscalationItem
	item.Reason, item.ID = performatives.Confirmation, "019478a3-0001-7def-8a12-000000000001"
	receipt := client.Receipt{Acceptance: api.Acceptance{Accepted: true, State: session.Escalated}}
	deaf := func(context.Context, string) (api.EscalationItem, error) { return item, errors.New("nobody answers") }
	if got := ruled(t.Context(), alice, client.Ruling{Decision: performatives.Approved}, item, receipt, deaf); got != "approved; others have yet to confirm the agreement\n" {
		t.Errorf("it says %q", got)
	}
}

// The last of several approvals says what is in force: what all approvers allow.
func TestQuorumIsShown(t *testing.T) {
	t.Parallel()
	most := func(n float64) *performatives.RulingsAuthority {
		return &performatives.RulingsAuthority{MaxAmount: &n, Currency: "USD"}
	}
	var item api.EscalationItem
	item.Votes = []api.VoteView{{By: "human://acme.com/anna", Decision: performatives.Approved, Authority: most(20000)}}
	receipt := client.Receipt{Acceptance: api.Acceptance{Accepted: true, State: session.Conversing}}
	deaf := func(context.Context, string) (api.EscalationItem, error) { return item, errors.New("nobody answers") }
	ruling := client.Ruling{Decision: performatives.Approved, Authority: most(25000)}
	got := ruled(t.Context(), alice, ruling, item, receipt, deaf)
	if want := "approved; the session is CONVERSING\nallowed: at most 20000 USD\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}

	// Said again, it is what the broker recorded the first time, by the ceiling of who said it.
	recorded := item
	recorded.Votes = append(recorded.Votes, api.VoteView{By: alice, Decision: performatives.Approved, Authority: most(500)})
	for n, before := range []api.EscalationItem{item, recorded} {
		got := ruled(t.Context(), alice, ruling, before, receipt, func(context.Context, string) (api.EscalationItem, error) { return recorded, nil })
		if want := "approved; the session is CONVERSING\nallowed: at most 500 USD\n"; got != want {
			t.Errorf("time %d: it says %q, want %q", n+1, got, want)
		}
	}
}

// A dispute in the inbox is answered in its session: whoever rules on it is told the command. The agreement
// that it is about shows what each side said.
func TestDisputeInInbox(t *testing.T) {
	t.Parallel()
	w := &stored{}
	w.starts(t, testkit.Options{Dev: true})
	w.Client(alice)
	s, err := w.Client(alpha).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "cups"})
	testkit.Must(t, err)
	theirs := w.Client(beta).Session(s.ID())
	_, err = theirs.Accept(w.Ctx, "inv")
	testkit.Must(t, err)
	_, err = theirs.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "purchase", Subject: "cups", Terms: map[string]any{"price": 120.5}})
	testkit.Must(t, err)
	_, err = s.Accept(w.Ctx, "p1")
	testkit.Must(t, err)
	_, err = s.Commit(w.Ctx, client.Commitment{ID: "k1", For: "p1", Obligations: []performatives.Obligation{{Party: alpha, Action: "pay", Amount: &performatives.Worth{Value: 120.5, Currency: "EUR"}}}})
	testkit.Must(t, err)
	agreed, err := theirs.Accept(w.Ctx, "k1")
	testkit.Must(t, err)
	_, err = theirs.Inform(w.Ctx, performatives.Dispute, performatives.DisputeData{DisputeID: "d0", Subject: agreed.Hash, Ground: "other", Claim: "too late", Severity: 1})
	testkit.Must(t, err)
	var id string
	testkit.Eventually(t, "the dispute is in the inbox", func() bool {
		for item, err := range w.Client(alice).Escalations(w.Ctx, api.ListEscalations{}) {
			testkit.Must(t, err)
			id = string(item.ID)
		}
		return id != ""
	})
	for _, args := range [][]string{{"approve", id}, {"deny", id, "--reason", "1"}, {"guide", id, "ask"}} {
		said, status := w.reports(slices.Concat([]string{"inbox"}, args, []string{"--url", w.URL, "--as", string(alice)}))
		if want := "parley dispute reply " + string(s.ID()) + " d0 concede, deny or offer"; status != misuse || !strings.Contains(said, want) {
			t.Errorf("%v: status %d: %s", args, status, said)
		}
	}
	said, _ := w.reports([]string{"inbox", "show", id, "--url", w.URL, "--as", string(alice)})
	for _, want := range []string{"about: commitment k1 offered by alpha, accepted", "what beta claims", "the dispute is unresolved", "• alpha: pay 120.50 EUR"} {
		if !strings.Contains(said, want) {
			t.Errorf("it shows the dispute without %q:\n%s", want, said)
		}
	}
	testkit.Eventually(t, "the agreement names the entries of both sides", func() bool {
		said, status := w.reports([]string{"agreement", "show", string(s.ID()), "--url", w.URL, "--as", string(alpha)})
		return status == done && strings.Contains(said, "PROPOSE of "+string(beta)) && strings.Contains(said, "COMMIT of "+string(alpha)) && strings.Contains(said, "ACCEPT of "+string(beta))
	})
}

// A bound in another currency than that of the offer at stake lets the agent agree to nothing, which is said.
func TestOtherCurrency(t *testing.T) {
	t.Parallel()
	var item api.EscalationItem
	item.Amount = &ruling.Amount{Value: 90, Currency: "eur", Path: "terms.price"}
	for want, a := range map[string]performatives.RulingsAuthority{
		"80 USD, where 90 EUR is asked for":               {MaxAmount: new(80.0), Currency: "USD"},
		"price at most 80 USD, where 90 EUR is asked for": {Bounds: []performatives.RulingsBound{{TermPath: "price", Max: new(80.0), Currency: "USD"}}},
		"": {MaxAmount: new(80.0), Currency: "EUR", Bounds: []performatives.RulingsBound{{TermPath: "terms.fee", Max: new(1.0), Currency: "USD"}}},
	} {
		got := otherCurrency(&a, item)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want)) {
			t.Errorf("it warns of %q, want %q", got, want)
		}
	}
}

// An approval whose bounds the offer at stake does not keep is said to be one.
func TestBeyond(t *testing.T) {
	t.Parallel()
	most := 450.0
	var item api.EscalationItem
	item.Amount = &ruling.Amount{Value: 450.5, Currency: "USD"}
	item.Changes = []api.Change{{Path: "terms.price", After: jsontext.Value("450.5")}, {Path: "terms.seats", After: jsontext.Value("10")}, {Path: "terms.list", After: jsontext.Value(`[{"price":2}]`)}}
	bounds := performatives.RulingsAuthority{MaxAmount: &most, Bounds: []performatives.RulingsBound{
		{TermPath: "terms.seats", Equals: jsontext.Value("11")}, {TermPath: "terms.list.0.price", Max: new(1.0)},
		{TermPath: "price", Max: new(451.0)}, {TermPath: "terms.seats", Min: new(11.0)}, {TermPath: "terms.nosuch", Max: new(1.0)},
	}}
	more, less := beyond(&bounds, item)
	if want := []string{"price at most 451, where 450.5 is asked for"}; !slices.Equal(more, want) {
		t.Errorf("more: %q, want %q", more, want)
	}
	want := []string{"450, where 450.5 is asked for", "terms.seats exactly 11, where it is 10", "terms.seats at least 11, where 10 is asked for", "terms.nosuch, which the terms at stake do not have"}
	if !slices.Equal(less, want) {
		t.Errorf("less: %q, want %q", less, want)
	}
}
