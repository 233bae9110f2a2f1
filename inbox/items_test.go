package inbox_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
)

const (
	alpha = performatives.Agent("agent://acme.example/alpha")
	beta  = performatives.Agent("agent://widgets.example/beta")
)

// entersWorld signs alice in at a broker with rules for her organisation.
func entersWorld(t *testing.T, rules *escalation.Organisation) (*testkit.World, *visitor) {
	t.Helper()
	o := testkit.Options{Dev: true, HTTP: "127.0.0.1:0"}
	if rules != nil {
		o.Rules = &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{"acme.example": rules}}
		testkit.Must(t, o.Rules.Check())
	}
	w := testkit.NewWorld(t, o)
	v := visits(t, w.Broker)
	if status, body := v.posts("/inbox/login", map[string]any{"agentId": alice}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	return w, v
}

// escalates opens a session with a seller, whose offer alpha escalates.
func escalates(w *testkit.World, seller performatives.Agent, subject string) (session performatives.SessionID, item string) {
	w.Helper()
	s, err := w.Client(seller).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{alpha}, Purpose: "a plan"})
	testkit.Must(w, err)
	buys := w.Client(alpha).Session(s.ID())
	_, err = buys.Accept(w.Ctx, "inv")
	testkit.Must(w, err)
	_, err = s.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: subject, Terms: map[string]any{"price": 1500, "currency": "USD"}})
	testkit.Must(w, err)
	asked, err := buys.Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Urgency: client.High, Context: "above my limit", About: "p1"})
	testkit.Must(w, err)
	return s.ID(), asked.ID
}

// The form offers the reasons of the rules, and wants one where they do.
func TestReasonToDeny(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, &escalation.Organisation{Deny: escalation.Deny{Required: true, Reasons: []string{`Above the "budget"`}}})
	_, id := escalates(w, beta, "A plan")
	got := v.sends("GET", "/inbox/items/"+id, "").body
	for _, want := range []string{`<option value="Above the &#34;budget&#34;">`, `name="comment" maxlength="4000" required`, "your rules want a reason"} {
		if !strings.Contains(got, want) {
			t.Errorf("the form has no %s", want)
		}
	}
}
