package inbox_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// The page of agents shows who is registered, what they do and whether they are online, to
// people who are signed in and to nobody else.
func TestAgents(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0"})
	v := visits(t, w.Broker)
	html := func(r *http.Request) { r.Header.Set("Accept", "text/html,*/*;q=0.8") }
	for path, to := range map[string]string{"/agents": "inbox/agents", "/inbox/agents?search=x": "login?next=agents%3Fsearch%3Dx"} {
		if got := v.sends("GET", path, "", html); got.status != http.StatusSeeOther || got.header.Get("Location") != to {
			t.Errorf("%s: %d %s", path, got.status, got.header.Get("Location"))
		}
	}
	if got := v.sends("GET", "/inbox/part/agents", "", func(r *http.Request) { r.Header.Set("Parley-Inbox", "1") }); got.status != http.StatusUnauthorized {
		t.Errorf("a part for a visitor who is not signed in: %d %s", got.status, got.body)
	}
	if got := v.sends("GET", "/agents", ""); got.status != http.StatusOK || !strings.HasPrefix(got.body, `{"items":[`) {
		t.Errorf("a program's /agents: %d %s", got.status, got.body)
	}
	if status, body := v.posts("/inbox/login", map[string]any{"agentId": alice}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	const seller performatives.Agent = "agent://widgets.example/beta"
	_, err := w.Client(seller).Register(w.Ctx, api.Card{
		Name: "<b>Beta</b>", Capabilities: []string{"sell.disks"}, QueueDepth: []byte("1"), Pricing: []byte(`{"amount":"2","currency":"EUR"}`),
		Skills: []discovery.Skill{{ID: "s", Name: "Disks"}},
	})
	testkit.Must(t, err)
	page := v.sends("GET", "/inbox/agents", "").body
	for _, want := range []string{"&lt;b&gt;Beta&lt;/b&gt;", "sell.disks", "Disks", "2 EUR", "1 task", ">online<", `data-found="1 agent"`, `aria-current="page">Agents`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %s", want)
		}
	}
	if found := v.sends("GET", "/inbox/part/agents?search=disks+beta", "").body; !strings.Contains(found, string(seller)) {
		t.Errorf("a search finds %s", found)
	}
	if found := v.sends("GET", "/inbox/part/agents?search=tapes", "").body; strings.Contains(found, string(seller)) || !strings.Contains(found, "No agent matches") {
		t.Errorf("a search finds %s", found)
	}
}

// The page counts the reader's sessions with each agent by their outcome.
func TestAgentsBySessions(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, nil)
	const gamma performatives.Agent = "agent://elsewhere.example/gamma"
	buyer, seller := w.Client(alpha), w.Client(beta)
	for _, a := range []performatives.Agent{beta, gamma} {
		_, err := w.Client(a).Register(w.Ctx, api.Card{})
		testkit.Must(t, err)
	}
	open := func(from *client.Client, to performatives.Agent) *client.Session {
		s, err := from.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{to}, Purpose: "cups"})
		testkit.Must(t, err)
		return s
	}
	joined := func() (ours, theirs *client.Session) {
		ours = open(buyer, beta)
		theirs = seller.Session(ours.ID())
		_, err := theirs.Accept(w.Ctx, "inv")
		testkit.Must(t, err)
		return ours, theirs
	}
	ours, theirs := joined() // agreed
	_, err := ours.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: "cups", Terms: map[string]any{"price": 5}})
	testkit.Must(t, err)
	_, err = theirs.Accept(w.Ctx, "p1")
	testkit.Must(t, err)
	_, err = ours.Close(w.Ctx, client.Closing{Outcome: performatives.Completed})
	testkit.Must(t, err)
	for range 2 { // rejected
		_, err = seller.Session(open(buyer, beta).ID()).Reject(w.Ctx, "inv", client.Rejection{Reason: "no"})
		testkit.Must(t, err)
	}
	ours, _ = joined() // ended otherwise
	_, err = ours.Close(w.Ctx, client.Closing{Outcome: "failed"})
	testkit.Must(t, err)
	joined()                    // open
	open(w.Client(gamma), beta) // of others

	for path, want := range map[string]string{
		"/inbox/agents?search=beta":      `</span><a href="sessions?with=agent%3A%2F%2Fwidgets.example%2Fbeta">1 open, 1 agreed, 2 rejected, 1 ended otherwise</a></td>`,
		"/inbox/part/agents?search=beta": ">1 open, 1 agreed, 2 rejected, 1 ended otherwise</a></td>",
		"/inbox/agents?search=gamma":     `<span class="soft">none</span>`,
	} {
		var page string
		testkit.Eventually(t, "all are counted", func() bool {
			page = v.sends("GET", path, "").body
			return !strings.Contains(page, "some are not counted yet")
		})
		if !strings.Contains(page, want) {
			t.Errorf("%s does not have %s:\n%s", path, want, page)
		}
	}
}
