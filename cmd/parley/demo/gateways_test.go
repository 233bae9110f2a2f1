package demo

import (
	"strings"
	"testing"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// Over a gateway two hosted agents play one scene with its client library; the report is of its
// signed transcript.
func TestGateways(t *testing.T) {
	t.Parallel()
	for face, want := range map[string]struct {
		mode  string
		other string // one that it has not
		shown []string
	}{
		MCP: {"asp/1", Binding, []string{
			"Enterprise sales calls open_session → INVITED", "Procurement alpha calls wait_for_turn → turn, INVITED; allowed: accept, ", "ACCEPT invitation",
			"Procurement alpha calls escalate → ESCALATED", "in the escalation inbox of acme.example", "Approved at $15k",
			"ACCEPT prop_050", "Procurement alpha calls accept → CONVERSING", "Enterprise sales calls close → CLOSED", "verified offline", "completed  yes",
		}},
		A2A: {"asp/1", Convergent, []string{
			"Enterprise sales sends SendMessage open to Procurement alpha → TASK_STATE_WORKING · The invitation waits for",
			"Procurement alpha sends GetTask to Enterprise sales → TASK_STATE_INPUT_REQUIRED · It is your turn. invitation: the invitation of enterprise waits", "ACCEPT invitation",
			"SendMessage escalate to Enterprise sales → TASK_STATE_AUTH_REQUIRED · A human of acme.example decides", "in the escalation inbox of acme.example",
			"Approved at $15k", "ACCEPT prop_050", "SendMessage accept to Enterprise sales → TASK_STATE_COMPLETED",
			"SendMessage close to Procurement alpha → TASK_STATE_COMPLETED · There is an agreement: you offer pricePerMonth 15,000, seats 300, support 24/7; accepted. · artifact outcome · artifact agreement", "verified offline", "completed  yes",
		}},
		MACP: {"convergent/1", ASP, []string{
			"Vendor sends SessionStart → SESSION_STATE_OPEN", "PROPOSE p1", "Vendor sends Proposal → ", "COUNTER p1 (#2) with p2", "Client sends CounterProposal → ",
			"COUNTER p2 (#3) with p3", "ACCEPT p3", "ACCEPT p3", "COMMIT c1", "Vendor sends Commitment → SESSION_STATE_RESOLVED", "CLOSE completed", "verified offline", "completed  yes",
		}},
	} {
		t.Run(face, func(t *testing.T) {
			t.Parallel()
			b := testkit.StartBroker(t, testkit.Options{HTTP: "127.0.0.1:0", MACP: "127.0.0.1:0"})
			o := Options{URL: b.URL, HTTP: "http://" + b.HTTPAddr, MACP: b.MACPAddr, Operator: b.Operator(), Face: face}
			playAll(t, o)
			r, out := playAll(t, o) // again, with the agents registered
			if len(r.Scenes) != 1 || r.Scenes[0].Mode != want.mode || r.Scenes[0].Outcome != performatives.Completed {
				t.Errorf("%+v", r.Scenes)
			}
			inOrder(t, out, want.shown...)
			if _, err := Run(t.Context(), Options{Face: face, Mode: want.other}); err == nil || !strings.Contains(err.Error(), "over "+face) {
				t.Errorf("%s over %s: %v", want.other, face, err)
			}
		})
	}
}
