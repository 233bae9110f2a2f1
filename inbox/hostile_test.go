package inbox_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"unicode"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// TestHostileText: no page sends a character of a counterparty's text that is invisible or
// turns other text around, be it in text, an attribute or the value of an input.
func TestHostileText(t *testing.T) {
	t.Parallel()
	const (
		hostile = "ok\u009b31m\u202egro.live\u202c\u200b\ufeff\U000e0041\nline"
		seller  = performatives.Agent("agent://widgets.example/beta")
		buyer   = performatives.Agent("agent://acme.example/alpha")
	)
	w := testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0"})
	v := visits(t, w.Broker)
	if status, body := v.posts("/inbox/login", map[string]any{"agentId": alice}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	buys := w.Client(buyer)
	_, err := buys.PutSchema(w.Ctx, "hostile-v1", json.RawMessage(`{"type":"object","properties":{"tier":{"enum":["a","a\u202eb"],"description":"x\u202ey"},"price":{"type":"number","title":"\u202e"}}}`))
	testkit.Must(t, err)
	s, err := w.Client(seller).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{buyer}, Purpose: hostile, Schemas: []string{"hostile-v1"}})
	testkit.Must(t, err)
	_, err = buys.Session(s.ID()).Accept(w.Ctx, "inv")
	testkit.Must(t, err)
	_, err = s.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: hostile, Schema: "hostile-v1",
		Terms: map[string]any{"price": 1, "tier": "a\u202eb", "name": "x\u202ey", hostile: hostile}})
	testkit.Must(t, err)
	asked, err := buys.Session(s.ID()).Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Urgency: client.High, Context: hostile, About: "p1"})
	testkit.Must(t, err)

	_, err = w.Client(seller).Register(w.Ctx, api.Card{Name: hostile, Description: hostile, Capabilities: []string{hostile}, Skills: []discovery.Skill{{ID: "s", Name: hostile}}})
	testkit.Must(t, err)

	for _, path := range []string{"agents", "agents?search=x%E2%80%AEy", "part/agents", "", "items/" + asked.ID, "part/items/" + asked.ID, "part/queue", "sessions", "sessions/" + string(s.ID()), "items/x%E2%80%AEy", "?search=x%E2%80%AEy"} {
		got := v.sends("GET", "/inbox/"+path, "")
		for _, c := range got.body {
			if c != '\n' && !unicode.IsPrint(c) {
				t.Errorf("/inbox/%s sends %U", path, c)
				break
			}
		}
	}
	if _, body := v.posts("/inbox/call/escalation.claim", map[string]any{"escalationId": hostile}); !isPrintable(body) {
		t.Errorf("a refusal sends %q", body)
	}
}

func isPrintable(s string) bool {
	for _, c := range s {
		if !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}
