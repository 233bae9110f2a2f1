package inbox_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
)

// The page of agents shows who is registered, what they do and whether they are online, to
// people who are signed in and to nobody else.
func TestAgents(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0"})
	v := visits(t, w.Broker)
	for path, to := range map[string]string{"/agents": "inbox/agents", "/inbox/agents?search=x": "login?next=agents%3Fsearch%3Dx"} {
		if got := v.sends("GET", path, ""); got.status != http.StatusSeeOther || got.header.Get("Location") != to {
			t.Errorf("%s: %d %s", path, got.status, got.header.Get("Location"))
		}
	}
	if got := v.sends("GET", "/inbox/part/agents", "", func(r *http.Request) { r.Header.Set("Parley-Inbox", "1") }); got.status != http.StatusUnauthorized {
		t.Errorf("a part for a stranger: %d %s", got.status, got.body)
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
