package insights_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-asp/parley/broker/insights"
)

// Where people confirm what was agreed, the session ended as they decided.
func TestConfirmations(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 7, 14, 0, 0, 0, time.UTC)
	minute := 0
	entry := func(sender, act, body, state string) []byte {
		minute++
		return fmt.Appendf(nil, `{"messageId":"m%d","performative":%q,"sender":{"agentId":%q},"content":{"body":%s},"integrity":{"receipt":{"acceptedAt":%q,"state":%q}}}`,
			minute, act, sender, body, began.Add(time.Duration(minute)*time.Minute).Format(time.RFC3339), state)
	}
	const alpha, beta, alice, bob = "agent://a.example/x", "agent://b.example/y", "human://a.example/alice", "human://b.example/bob"
	rules := func(human, item, decision, state string) []byte {
		return entry(human, "INFORM", fmt.Sprintf(`{"type":"resolution","data":{"escalationId":%q,"decision":%q}}`, item, decision), state)
	}
	for name, c := range map[string]struct {
		decide func() [][]byte
		end    insights.End
		agreed int // minutes after the first
		by     []string
	}{
		"both approve": {func() [][]byte {
			return [][]byte{rules(bob, "m4", "approved", "ESCALATED"), rules(alice, "m3", "approved", "CLOSED")}
		}, insights.Agreed, 6, []string{"approved", "approved"}},
		"one denies": {func() [][]byte {
			return [][]byte{rules(bob, "m4", "approved", "ESCALATED"), rules(alice, "m3", "denied", "CLOSED")}
		}, insights.Rejected, 0, []string{"denied", "approved"}},
		"one closes": {func() [][]byte {
			return [][]byte{entry(bob, "CLOSE", `{}`, "CLOSED")}
		}, insights.Rejected, 0, []string{"", ""}},
		"nobody decides": {func() [][]byte {
			return [][]byte{entry("broker://U", "CLOSE", `{"outcome":"failed","reason":"escalation_expired"}`, "FAILED")}
		}, insights.Failed, 0, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			minute = 0
			d, err := insights.Read(append([][]byte{
				entry(alpha, "PROPOSE", `{"proposalId":"i","type":"session-invitation","terms":{"mode":"bilateral/1"}}`, "INVITED"),
				entry(beta, "ACCEPT", `{"referenceId":"i"}`, "INTRODUCED"),
				entry(alpha, "PROPOSE", `{"proposalId":"p1","terms":{}}`, "CONVERSING"),
				entry(beta, "ACCEPT", `{"referenceId":"p1"}`, "ESCALATED"),
			}, c.decide()...))
			if err != nil {
				t.Fatal(err)
			}
			var by []string
			for _, e := range d.Escalations {
				by = append(by, e.Decision)
			}
			var agreed time.Time
			if c.agreed > 0 {
				agreed = began.Add(time.Duration(c.agreed) * time.Minute)
			}
			if d.End != c.end || !d.Agreed.Equal(agreed) || fmt.Sprint(by) != fmt.Sprint(c.by) || d.Escalations[0].By != "a.example" {
				t.Errorf("%+v, want end %d at %s by %v", d, c.end, agreed, c.by)
			}
		})
	}
}
