package escalation_test

import (
	"testing"
	"time"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// Whoever looks, and whenever, notes the same: what the transcript and the
// clock have caused, each once, in order.
func TestCaseCatchesUp(t *testing.T) {
	item := &escalation.Item{
		ID: "e1", By: alpha, Org: "acme.com", At: monday, Due: monday.Add(3 * time.Hour),
		Route: &performatives.Route{Levels: []performatives.Level{
			{Approvers: []performatives.Agent{alice}, Quorum: 1, Due: monday.Add(time.Hour)},
			{Approvers: []performatives.Agent{anna}, Quorum: 1, Due: monday.Add(3 * time.Hour)},
		}},
	}
	plan := func() escalation.Plan {
		return escalation.Plan{Rule: "large", Remind: []time.Time{monday.Add(50 * time.Minute), monday.Add(150 * time.Minute)}}
	}
	var now escalation.Case
	var kinds []escalation.Kind
	catchUp := func(at time.Time) {
		for range 20 {
			e, more := now.Missing(item, plan, at)
			if !more {
				return
			}
			kinds = append(kinds, e.Kind)
			now = now.With(e)
		}
		t.Fatalf("does not come to an end: %v", kinds)
	}
	check := func(when string, want ...escalation.Kind) {
		t.Helper()
		if len(kinds) != len(want) {
			t.Fatalf("%s: %v, want %v", when, kinds, want)
		}
		for n := range want {
			if kinds[n] != want[n] {
				t.Fatalf("%s: %v, want %v", when, kinds, want)
			}
		}
		kinds = nil
	}
	next := func(at time.Duration, want time.Duration) {
		t.Helper()
		due, some := now.NextDue(item, monday.Add(at))
		if want == 0 && some || want != 0 && due.Sub(monday) != want {
			t.Errorf("after %s it looks again after %s, want %s", at, due.Sub(monday), want)
		}
	}
	catchUp(monday)
	check("asked", escalation.Opened)
	next(0, 50*time.Minute)
	catchUp(monday.Add(50 * time.Minute))
	check("reminded", escalation.Reminded)
	catchUp(monday.Add(55 * time.Minute))
	check("reminded once")
	next(50*time.Minute, time.Hour)
	item.Votes = []escalation.Vote{{By: alice, Decision: performatives.Approved}}
	catchUp(monday.Add(time.Hour))
	check("a vote, and the next level's turn", escalation.Voted, escalation.Reescalated)
	if now.Level != 1 || now.Revision != 1 {
		t.Errorf("%+v", now)
	}
	next(time.Hour, 150*time.Minute)
	catchUp(monday.Add(160 * time.Minute))
	check("reminded again", escalation.Reminded)
	next(150*time.Minute, 0)
	item.End = escalation.End{How: escalation.EndExpired}
	catchUp(monday.Add(4 * time.Hour))
	check("over", escalation.Ended)
	next(4*time.Hour, 0)

	now, kinds = escalation.Case{}, nil
	catchUp(monday.Add(4 * time.Hour))
	check("all at once, by a broker that was away", escalation.Opened, escalation.Voted, escalation.Ended)
}

// A claim is one human's, for a while; a view leaves the case as it was.
func TestCase(t *testing.T) {
	now := escalation.Case{}.With(escalation.Action{Kind: escalation.Claimed, At: monday, By: alice, Until: monday.Add(time.Minute)})
	for name, test := range map[string]struct {
		by   performatives.Agent
		at   time.Time
		held bool
	}{
		"another's":     {anna, monday, true},
		"one's own":     {alice, monday, false},
		"that is over":  {anna, monday.Add(time.Minute), false},
		"that is about": {anna, monday.Add(time.Minute - 1), true},
	} {
		if held := now.HeldByAnother(test.by, test.at) != nil; held != test.held {
			t.Errorf("a claim %s: held is %v", name, held)
		}
	}
	seen := now.With(escalation.Action{Kind: escalation.Viewed, At: monday, By: anna})
	if seen.Actions != now.Actions || seen.Revision != now.Revision || len(seen.Views) != 1 || len(now.Views) != 0 {
		t.Errorf("a view: %+v, before it %+v", seen, now)
	}
	if after := now.With(escalation.Action{Kind: escalation.Voted, By: alice}); after.Claim != nil {
		t.Error("who has voted still holds it")
	}
	if after := now.With(escalation.Action{Kind: escalation.Commented, By: anna}); after.Revision != now.Revision+1 || after.Claim == nil {
		t.Errorf("a comment: %+v", after)
	}
	route := &performatives.Route{Levels: []performatives.Level{{Quorum: 1, Due: monday.Add(time.Hour)}, {Quorum: 1, Due: monday.Add(2 * time.Hour)}}}
	up := now.With(escalation.Action{Kind: escalation.Transferred, At: monday, By: alice, Level: 1})
	if r := up.Route(route); !r.Levels[0].Due.Equal(monday) || !r.Levels[1].Due.Equal(monday.Add(2*time.Hour)) || !route.Levels[0].Due.Equal(monday.Add(time.Hour)) {
		t.Errorf("transferred: %+v, of %+v", r, route)
	}
}
