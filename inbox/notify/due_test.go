package notify_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/inbox/notify"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// People of an organisation whose rules say so are told once of what is due soon and of what is overdue, by
// webhook without words of a party, and by mail with them quoted. What is due later is told nobody.
func TestDue(t *testing.T) {
	t.Parallel()
	const seller, buyer = performatives.Agent("agent://clouds.example/sales"), performatives.Agent("agent://acme.example/alpha")
	lead := escalation.Duration(time.Hour)
	rules := &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{
		acme: {RemindDue: &lead, Roles: map[string][]string{escalation.RoleOwner: {string(alice)}}},
	}}
	testkit.Must(t, rules.Check())
	w := listens(t)
	clock := new(testkit.Clock)
	w.Broker = testkit.StartBroker(t, testkit.Options{Dev: true, Now: clock.Now, Rules: rules, Notify: w.config(both)})
	theirs, ours := w.client(seller), w.client(buyer)
	must := func(r client.Receipt, err error) client.Receipt { t.Helper(); testkit.Must(t, err); return r }
	s, err := theirs.Invite(t.Context(), client.Invitation{ProposalID: "inv", With: []performatives.Agent{buyer}, Purpose: "cups"})
	testkit.Must(t, err)
	must(ours.Session(s.ID()).Accept(t.Context(), "inv"))
	must(s.Observe(t.Context(), "on we go", nil))
	in := func(d time.Duration) *time.Time { at := clock.Now().Add(d); return &at }
	send, pay := in(30*time.Minute), in(2*time.Hour)
	must(s.Commit(t.Context(), client.Commitment{ID: "k1", Obligations: []performatives.Obligation{
		{ID: "later", Party: buyer, Action: "later", Deadline: in(300 * time.Hour)},
		{ID: "pay", Party: buyer, Action: "pay\r\nBcc: x@evil.example \u202e", Deadline: pay},
		{ID: "send", Party: seller, Action: "send", Deadline: send},
		{ID: "bring", Party: seller, Action: "bring", VerificationMethod: "by eye", AcceptanceWindowMs: (150 * time.Minute).Milliseconds()},
	}}))
	must(ours.Session(s.ID()).Accept(t.Context(), "k1"))
	must(s.Inform(t.Context(), performatives.Result, performatives.ResultData{CommitmentID: "k1", Obligation: "bring"}))

	told := func(kind string, obligation string, delivered bool) notify.DuePayload {
		t.Helper()
		var p notify.DuePayload
		testkit.Must(t, json.UnmarshalRead(next(w, w.hooks).Body, &p))
		if p.Type != "obligation."+kind || p.Obligation != obligation || p.Delivered != delivered || p.Organisation != acme || p.Session != s.ID() {
			t.Fatalf("the hook is told %+v, want %s of %s", p, kind, obligation)
		}
		return p
	}
	mailed := func(subject string) (text string) {
		t.Helper()
		head, text, _ := strings.Cut(next(w, w.mails), "\r\n\r\n")
		text = strings.ReplaceAll(strings.ReplaceAll(text, "=\r\n", ""), "=3D", "=")
		if !strings.HasPrefix(head, "RCPT alice@acme.example\r\n") || !strings.Contains(head, subject) || strings.Contains(head, "evil") {
			t.Errorf("the mail is %s\n%s", head, text)
		}
		return text
	}
	passes := func(d time.Duration) {
		t.Helper()
		clock.Advance(d)
		_, err := w.Broker.Broker.Options.Conn.RequestWithContext(w.ctx, "asp.timer.due."+string(s.ID()), nil) // as the timer does
		testkit.Must(t, err)
	}
	wakes := func(at time.Time) {
		t.Helper()
		testkit.Eventually(t, "the session's timer is set for "+at.String(), func() bool {
			set, _, err := w.Broker.Broker.Parts.Timers.Stored(w.ctx, s.ID())
			testkit.Must(t, err)
			got, err := time.Parse(time.RFC3339Nano, set)
			return err == nil && got.Sub(at).Abs() < 2*time.Second
		})
	}
	wakes(*send)
	passes(45 * time.Minute) // what the seller owes is overdue
	if p := told("overdue", "send", false); p.Party != seller {
		t.Errorf("the hook is told of %s", p.Party)
	}
	mailed("[overdue] " + string(seller))
	wakes(pay.Add(-time.Hour))
	passes(30 * time.Minute) // an hour before what the buyer owes
	p := told("due", "pay", false)
	if len(p.For) != 1 || p.For[0] != buyer || !strings.HasSuffix(p.Link, "sessions/"+string(s.ID())+"/obligation?commitment=k1&obligation=pay") {
		t.Errorf("the hook is told %+v", p)
	}
	if text := mailed("[due] " + string(buyer)); !strings.Contains(text, "> pay") || !strings.Contains(text, `\u202e`) || !strings.Contains(text, "obligation=pay") {
		t.Errorf("the mail is %s", text)
	}
	w.Down() // the session is read anew, and nobody is told again
	w.Up()
	s = w.client(seller).Session(s.ID())
	passes(20 * time.Minute)
	if p := told("due", "bring", true); len(p.For) != 1 || p.For[0] != buyer {
		t.Errorf("the hook is told %+v", p)
	}
	mailed("[due] a delivery of " + string(seller))
	passes(30 * time.Minute)
	told("overdue", "pay", false)
	mailed("[overdue] " + string(buyer))
}
