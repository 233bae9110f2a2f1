package inbox_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// A human whose role is operator sees how the installation does, and no deal; an owner, an auditor and a
// colleague are refused.
func TestOperator(t *testing.T) {
	t.Parallel()
	const oscar, olive, colin = performatives.Agent("human://acme.example/oscar"), performatives.Agent("human://acme.example/olive"), performatives.Agent("human://acme.example/colin")
	w, v := entersWorld(t, &escalation.Organisation{Roles: map[string][]string{
		escalation.RoleOperator: {string(oscar)}, escalation.RoleOwner: {string(olive)}, escalation.RoleAuditor: {string(olive)},
	}})
	id, item := escalates(w, beta, "a secret plan")
	s, err := w.Client(alpha).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "a secret"})
	testkit.Must(t, err)
	account := w.Broker.Broker.Command.Accounts().Of(beta)
	testkit.Must(t, account.Admit(1, 1<<40)) // more than a minute's is owed
	if account.Admit(1, 1<<40) == nil {
		t.Fatal("so many bytes are admitted")
	}

	enters := func(who performatives.Agent) answer {
		w.Principal(who)
		if status, body := v.posts("/inbox/login", map[string]any{"agentId": who}); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		return v.sends("GET", "/inbox/operator", "")
	}
	got := enters(oscar)
	for _, want := range []string{
		`<a href="operator" aria-current="page">Operation</a>`, `<span class="chip good">alive</span>`, "<td>" + api.Version + "</td>", `<span class="sr">partitions </span>128`,
		"<code>ASP_SESSIONS</code>", "<dt>Agents</dt><dd>2, ", "<code>bytes</code>", string(beta), "No escalation is late.",
	} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the page of an operator does not have %q", want)
		}
	}
	if !strings.Contains(got.body, "<code>--monitor</code>") || strings.Contains(got.body, `id="activity"`) {
		t.Error("without metrics the page shows what the broker does")
	}
	for _, secret := range []string{string(id), string(s.ID()), item, "secret", "1,500", "a plan"} {
		if strings.Contains(got.body, secret) {
			t.Errorf("the page of an operator has %q of a deal", secret)
		}
	}
	for _, path := range []string{"", "/transcript", "/agreement"} { // under --dev a human may decide, and so read what was escalated
		if got := v.sends("GET", "/inbox/sessions/"+string(s.ID())+path, ""); got.status != http.StatusNotFound {
			t.Errorf("an operator gets %d of a deal's %q", got.status, path)
		}
	}
	if got := v.sends("GET", "/inbox/sessions", ""); strings.Contains(got.body, string(s.ID())) {
		t.Error("an operator sees a deal in the list")
	}
	for _, who := range []performatives.Agent{olive, colin} {
		if got := enters(who); got.status != http.StatusForbidden || strings.Contains(got.body, "ASP_SESSIONS") || strings.Contains(got.body, `href="operator"`) {
			t.Errorf("%s gets %d", who, got.status)
		}
	}
}

// Agreements lists what the deals agreed on, with a link to each deal and its document.
func TestAgreementsPage(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, nil)
	if got := v.sends("GET", "/inbox/agreements", ""); !strings.Contains(got.body, "No agreements yet") {
		t.Errorf("without agreements: %d", got.status)
	}
	sells, buys := haggles(w)
	_, err := buys.Accept(w.Ctx, "p3")
	testkit.Must(t, err)
	_, err = sells.Close(w.Ctx, client.Closing{Outcome: performatives.Completed})
	testkit.Must(t, err)
	page := v.sends("GET", "/inbox/agreements", "").body
	for _, want := range []string{`href="sessions/` + string(buys.ID()) + `"`, `href="sessions/` + string(buys.ID()) + `/agreement" download`, `<td class="n">USD 1,100</td>`, "alpha acme.example", "beta widgets.example"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	v.posts("/inbox/login", map[string]any{"agentId": "human://elsewhere.example/eve"})
	if got := v.sends("GET", "/inbox/agreements", ""); strings.Contains(got.body, string(buys.ID())) {
		t.Error("a non-participant sees an agreement")
	}
}

// Where a broker counts what it does, the page of an operator shows that too.
func TestOperatorSeesActivity(t *testing.T) {
	t.Parallel()
	rules := &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{
		"acme.example": {Roles: map[string][]string{escalation.RoleOperator: {string(alice)}}},
	}}
	testkit.Must(t, rules.Check())
	w := testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0", Monitor: "127.0.0.1:0", Rules: rules})
	v := visits(t, w.Broker)
	if status, body := v.posts("/inbox/login", map[string]any{"agentId": alice}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	v.sends("GET", "/inbox/operator", "") // rates are of what comes after it
	escalates(w, beta, "a secret plan")
	testkit.Eventually(t, "the page has what was done, which is counted after its answer", func() bool {
		page := v.sends("GET", "/inbox/operator", "").body
		for _, want := range []string{
			`id="activity"`, "<dt>Ready</dt><dd>yes</dd>", "<dt>Escalations</dt><dd>later 1</dd>", "<code>ESCALATE</code>", "<code>accepted</code>", "ESCALATED 1",
		} {
			if !strings.Contains(page, want) {
				t.Logf("the page lacks %q", want)
				return false
			}
		}
		return true
	})
}
