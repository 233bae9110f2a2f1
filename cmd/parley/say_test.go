package main

import (
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// An ACCEPT of an open offer that is no move is refused by the broker, which says why.
func TestSayIsToldWhyNot(t *testing.T) {
	t.Parallel()
	w := &stored{}
	w.starts(t, testkit.Options{Dev: true})
	most := 10.0
	_, err := w.Client(beta).Register(w.Ctx, api.Card{Agent: beta, Organization: string(beta.Organisation()), MaxTransactionValue: &most, Currency: "EUR"})
	testkit.Must(t, err)
	s, err := w.Client(alpha).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "cups"})
	testkit.Must(t, err)
	w.printed("say", string(s.ID()), "accept", "--as", string(beta))
	w.printed("say", string(s.ID()), "propose", "--as", string(alpha), "--set", "proposalId=p1", "--set", "type=sale", "--set", "subject=cups", "--set", `terms={"price":11,"currency":"EUR"}`)
	if said, status := w.reports([]string{"say", string(s.ID()), "accept", "p1", "--url", w.URL, "--as", string(beta)}); status != failed || !strings.Contains(said, string(session.AuthorityExceeded)) {
		t.Errorf("an ACCEPT of more than the card allows: status %d: %s", status, said)
	}
}

// A person plays an agent's part by hand: say lists the moves and sends one, and session show begins
// with what is on the table.
func TestSay(t *testing.T) {
	t.Parallel()
	w := &stored{}
	w.starts(t, testkit.Options{Dev: true})
	s, err := w.Client(alpha).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "cups"})
	testkit.Must(t, err)
	says := func(as performatives.Agent, args ...string) (string, int) {
		return w.reports(append([]string{"say", string(s.ID()), "--url", w.URL, "--as", string(as)}, args...))
	}
	accepted := func(as performatives.Agent, args ...string) {
		t.Helper()
		if said, status := says(as, args...); status != done {
			t.Fatalf("%v: status %d: %s", args, status, said)
		}
	}
	accepted(beta, "accept")
	accepted(alpha, "propose", "--set", "type=sale", "--set", "subject=cups", "--set", "proposalId=p1", "--set", `terms={"price":50}`)
	listed, _ := says(beta)
	for _, want := range []string{"entry 2", "alpha offers price 50", "your turn", "you may ACCEPT p1", "you may COUNTER p1"} {
		if !strings.Contains(listed, want) {
			t.Errorf("the moves are listed without %q:\n%s", want, listed)
		}
	}
	if shown := w.printed("session", "show", string(s.ID()), "--as", string(beta)); !strings.Contains(shown, "you may ACCEPT p1") || strings.Index(shown, "you may") > strings.Index(shown, "session "+string(s.ID())) {
		t.Errorf("the conversation does not begin with what may be done:\n%s", shown)
	}
	for _, bad := range []struct {
		args   []string
		status int
		why    string
	}{
		{[]string{"withdraw", "p1"}, failed, "WITHDRAW p1 is no move of yours now"},
		{[]string{"dance"}, misuse, "DANCE is no performative"},
		{[]string{"counter", "p1", "--set", "terms.price"}, misuse, "want PATH=VALUE"},
		{[]string{"counter", "p1", "--set", "referenceId.x=1"}, misuse, "is no object"},
		{[]string{"counter", "p1", "--set", "reasn=1"}, misuse, "reasn"},
		{[]string{"accept", "p1", "--head", "1"}, failed, string(session.ChainConflict)},
	} {
		if said, status := says(beta, bad.args...); status != bad.status || !strings.Contains(said, bad.why) {
			t.Errorf("%v: status %d: %s", bad.args, status, said)
		}
	}
	accepted(beta, "counter", "p1", "--set", "terms.price=40", "--set", "proposalId=p2", "--head", "2")
	accepted(alpha, "accept", "p2")
	var deal api.Snapshot
	w.parses(w.printed("say", string(s.ID()), "--as", string(alpha), "--json"), &deal)
	if deal.Agreed == nil || deal.Agreed.ID != "p2" || !strings.Contains(string(deal.Agreed.Terms), `"price": 40`) {
		t.Errorf("agreed is %+v", deal.Agreed)
	}
	if said, status := w.reports([]string{"say", string(s.ID()), "--url", w.URL, "--data", w.Data}); status != misuse {
		t.Errorf("an operator has moves: status %d: %s", status, said)
	}
}
