package broker_test

import (
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// The conformance level of a card is pinned when its agent joins: what is registered later
// changes nothing in the session (PROTOCOL.md §6).
func TestConformance(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true})
	alpha, mini := w.Principal("agent://acme.com/alpha"), w.Principal("agent://sensors.io/mini")
	registers := func(level string) {
		t.Helper()
		_, err := w.Client(mini.Agent).Register(w.Ctx, api.Card{ConformanceLevel: []byte(level)})
		testkit.Must(t, err)
	}
	registers(`"Minimal"`)
	id := w.Open(alpha, mini)
	registers(`"full"`)
	propose := func(by *testkit.Principal, id performatives.SessionID, proposal string) session.Code {
		return testkit.Code(t, by.Submit(id, by.Envelope(id, testkit.Offer(proposal, 3))))
	}
	if code := propose(alpha, id, "p1"); code != session.ModeViolation {
		t.Errorf("to a Minimal agent: %q", code)
	}
	if code := propose(mini, id, "p2"); code != session.ModeViolation {
		t.Errorf("of a Minimal agent: %q", code)
	}
	mini.Say(id, testkit.Fact("done"))
	if code := propose(alpha, w.Open(alpha, mini), "p1"); code != "" {
		t.Errorf("to an agent that has become a full one: %q", code)
	}
}
