package inbox

import (
	"cmp"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// A grant is an authority as text, one bound a line.
type grant struct {
	Lines []string
	Until time.Time
}

// asGrant words what an approval allows. The labels are those of the item's terms.
func asGrant(a *performatives.RulingsAuthority, item *api.EscalationItem) *grant {
	if a.Empty() {
		return nil
	}
	g := new(grant)
	if a.MaxAmount != nil {
		line := "at most " + money(*a.MaxAmount, a.Currency)
		if a.TermPath != "" {
			line += " for " + labelOf(a.TermPath, item)
		}
		g.Lines = append(g.Lines, line)
	}
	for n := range a.Bounds {
		b := &a.Bounds[n]
		g.Lines = append(g.Lines, labelOf(b.TermPath, item)+": "+boundText(b))
	}
	if a.TermsHash != "" {
		line := "exactly the terms that were shown"
		if a.TermsHash != item.TermsHash {
			line = "exactly other terms than these"
		}
		g.Lines = append(g.Lines, line)
	}
	if a.ValidUntil != nil {
		g.Until = *a.ValidUntil
	}
	return g
}

func boundText(b *performatives.RulingsBound) string {
	switch {
	case b.Max != nil:
		return "at most " + money(*b.Max, b.Currency)
	case b.Min != nil:
		return "at least " + money(*b.Min, b.Currency)
	}
	var n float64
	if b.Equals.Kind() == '0' && json.Unmarshal(b.Equals, &n) == nil {
		return "exactly " + money(n, b.Currency)
	}
	return "exactly " + oneLine(valueText(b.Equals))
}

func labelOf(path string, item *api.EscalationItem) string {
	return cmp.Or(oneLine(item.Labels[path].Title), oneLine(inWords(path)))
}

// A vote is one decision on an item.
type vote struct {
	api.VoteView
	Grant *grant
}

func asVotes(item *api.EscalationItem) []vote {
	all := make([]vote, len(item.Votes))
	for n, v := range item.Votes {
		all[n] = vote{v, asGrant(v.Authority, item)}
	}
	return all
}

// inForce words what the approvals so far allow together; nil is no bound.
func inForce(item *api.EscalationItem) *grant {
	var all *performatives.RulingsAuthority
	for _, v := range item.Votes {
		if !escalation.Approves(v.Decision) {
			continue
		}
		if both, err := escalation.Intersect(all, v.Authority); err == nil { // the broker refuses a vote that contradicts the others
			all = both
		}
	}
	return asGrant(all, item)
}

// A tally counts approvals. Wanted is 1 unless several have to approve.
type tally struct{ Approved, Wanted int }

// tallyOf returns the tally of the level that is asked. People with a ceiling who
// approve terms without an amount may have to be two.
func tallyOf(item *api.EscalationItem) tally {
	t := tally{Wanted: 1}
	if item.Route == nil || len(item.Route.Levels) == 0 {
		return t
	}
	level := item.Route.Levels[min(item.Route.Level, len(item.Route.Levels)-1)]
	t = tally{level.Approved, level.Quorum}
	if item.Route.NonMonetary == escalation.NonMonetaryTwo && item.You != nil && len(item.You.Limits) > 0 {
		t.Wanted = max(t.Wanted, 2)
	}
	return t
}

// numbers returns the paths of the terms that may hold an amount, without those that a
// page cannot show as they are.
func numbers(item *api.EscalationItem) (paths []string) {
	for _, c := range item.Changes {
		if clean(c.Path) != c.Path {
			continue
		}
		if c.After.Kind() == '0' || c.After.Kind() == '"' && isDecimal(plainValue(c.After)) {
			paths = append(paths, c.Path)
		}
	}
	return paths
}
