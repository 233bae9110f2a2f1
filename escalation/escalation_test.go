package escalation_test

import (
	"testing"
	"time"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

const (
	alpha = performatives.Agent("agent://acme.com/procurement/alpha")
	alice = performatives.Agent("human://acme.com/alice")
	anna  = performatives.Agent("human://acme.com/anna")
	bob   = performatives.Agent("human://widgets.co/bob")
	evil  = performatives.Agent("human://acme.com.evil.org/alice")
)

// Answers are due after 24 h, 4 h, 1 h or 15 min, or as configured (PROTOCOL.md §7).
func TestWithin(t *testing.T) {
	for name, test := range map[string]struct {
		scale int64 // of the policy, over its defaults
		want  map[escalation.Urgency]time.Duration
	}{
		"by default": {1, map[escalation.Urgency]time.Duration{
			escalation.Low: 24 * time.Hour, escalation.Medium: 4 * time.Hour, escalation.High: time.Hour, escalation.Critical: 15 * time.Minute,
		}},
		"as configured": {2, map[escalation.Urgency]time.Duration{
			escalation.Low: 48 * time.Hour, escalation.Medium: 8 * time.Hour, escalation.High: 2 * time.Hour, escalation.Critical: 30 * time.Minute,
		}},
	} {
		policy := performatives.Policy{
			EscalationLow:      test.scale * escalation.DefaultLow.Milliseconds(),
			EscalationMedium:   test.scale * escalation.DefaultMedium.Milliseconds(),
			EscalationHigh:     test.scale * escalation.DefaultHigh.Milliseconds(),
			EscalationCritical: test.scale * escalation.DefaultCritical.Milliseconds(),
		}
		for urgency, want := range test.want {
			if got := urgency.Within(policy); got != want {
				t.Errorf("%s: %s within %s, want %s", name, urgency, got, want)
			}
		}
	}
	if escalation.MaxPaused != 7*24*time.Hour { // §5
		t.Errorf("all pauses bank at most %s", escalation.MaxPaused)
	}
}

// Only humans of the organisation with the authority may decide (PROTOCOL.md §7).
func TestMayDecide(t *testing.T) {
	for name, test := range map[string]struct {
		agent     performatives.Agent
		authority string
		want      bool
	}{
		"may decide":                       {alice, performatives.AuthorityDecide, true},
		"may not decide":                   {alice, performatives.AuthorityPrincipal, false},
		"no authority at all":              {alice, "", false},
		"of another organisation":          {bob, performatives.AuthorityDecide, false},
		"of one that only looks like it":   {evil, performatives.AuthorityDecide, false},
		"an agent, whatever it is called":  {alpha, performatives.AuthorityDecide, false},
		"a human who acts as a delegate":   {alice, "full", false},
		"nobody":                           {"", performatives.AuthorityDecide, false},
		"the broker does not decide alone": {"broker://acme.com", performatives.AuthorityDecide, false},
	} {
		if got := escalation.MayDecide(performatives.Member{Agent: test.agent, Authority: test.authority}, "acme.com"); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A human's repeated decision has the first result (PROTOCOL.md §7).
func TestSameDecision(t *testing.T) {
	yes, no := [32]byte{1}, [32]byte{2}
	voted := []escalation.Vote{{By: alice, Decision: performatives.Approved, Digest: yes, Message: "first"}}
	for name, test := range map[string]struct {
		votes  []escalation.Vote
		by     performatives.Agent
		digest [32]byte
		want   bool
	}{
		"the same":               {voted, alice, yes, true},
		"another decision":       {voted, alice, no, false},
		"another human":          {voted, anna, yes, false},
		"nobody has decided yet": {nil, alice, yes, false},
		"nothing at all":         {nil, "", [32]byte{}, false},
	} {
		item := escalation.Item{Votes: test.votes}
		first, got := item.SameDecision(test.by, test.digest)
		if got != test.want || got && first.Message != "first" {
			t.Errorf("%s: %v %v", name, got, first)
		}
	}
}

// An item is open until it has an end.
func TestOpen(t *testing.T) {
	for how, want := range map[string]bool{"": true, performatives.Approved: false, escalation.EndExpired: false, escalation.EndClosed: false} {
		if item := (escalation.Item{End: escalation.End{By: alice, How: how}}); item.Open() != want {
			t.Errorf("%q: open is %v", how, item.Open())
		}
	}
}
