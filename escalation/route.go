package escalation

import (
	"slices"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// Levels are the route's levels in order. Without a route there is one level that
// asks everybody and needs one approval.
func (i *Item) Levels() []performatives.Level {
	if i.Route == nil || len(i.Route.Levels) == 0 {
		return []performatives.Level{{Quorum: 1, Due: i.Due}}
	}
	return i.Route.Levels
}

// Level is the index of the current level at a time. Earlier levels may still
// decide.
func (i *Item) Level(at time.Time) int {
	levels := i.Levels()
	for n, level := range levels {
		if at.Before(level.Due) {
			return n
		}
	}
	return len(levels) - 1
}

// asks reports whether a level asks this human of the organisation.
func asks(level performatives.Level, a performatives.Agent) bool {
	return len(level.Approvers) == 0 && len(level.Sealed) == 0 || slices.Contains(level.Approvers, a)
}

// LevelOf is the index of the first level that asks this human, false if none
// does.
func (i *Item) LevelOf(a performatives.Agent) (level int, asked bool) {
	n := slices.IndexFunc(i.Levels(), func(level performatives.Level) bool { return asks(level, a) })
	return n, n >= 0
}

// Asks reports whether a member may decide at a time: a human of the organisation
// with the authority to, on the current level or an earlier one.
func (i *Item) Asks(m performatives.Member, at time.Time) bool {
	level, asked := i.LevelOf(m.Agent)
	return MayDecide(m, i.Org) && asked && level <= i.Level(at)
}

// Names reports whether a member may decide on any level, now or later.
func (i *Item) Names(m performatives.Member) bool {
	_, asked := i.LevelOf(m.Agent)
	return MayDecide(m, i.Org) && asked
}

// Approves reports whether a decision lets the agent go ahead.
func Approves(decision string) bool {
	return decision == performatives.Approved || decision == performatives.Modified
}

// Missing is how many approvals are missing at a time, on the level closest to its
// quorum among the current and earlier ones. Each level counts its own approvals,
// so waiting for a level to time out never lowers its quorum.
func (i *Item) Missing(at time.Time) int {
	levels := i.Levels()
	least := levels[0].Quorum
	for _, level := range levels[:i.Level(at)+1] {
		least = min(least, max(level.Quorum-i.Approved(level), 0))
	}
	return max(least, i.missingSecond())
}

// missingSecond is 1 if the rules want a second human because the only one who has
// approved has a ceiling and no amount is at stake.
func (i *Item) missingSecond() int {
	if !i.NonMonetary() || i.Route.NonMonetary != NonMonetaryTwo {
		return 0
	}
	limited := 0
	for _, v := range i.Votes {
		switch {
		case !Approves(v.Decision):
		case !v.Limited:
			return 0
		default:
			limited++
		}
	}
	if limited == 1 {
		return 1
	}
	return 0
}

// Approved counts the approvals by humans whom a level asks.
func (i *Item) Approved(level performatives.Level) int {
	n := 0
	for _, v := range i.Votes {
		if Approves(v.Decision) && asks(level, v.By) {
			n++
		}
	}
	return n
}

// Advance returns the route with a level asked from a time on, if it was not asked
// before: a transfer up the chain. The last due time stays.
func Advance(r performatives.Route, level int, at time.Time) *performatives.Route {
	r.Levels = slices.Clone(r.Levels)
	for n := range r.Levels[:min(max(level, 0), len(r.Levels)-1)] {
		if r.Levels[n].Due.After(at) {
			r.Levels[n].Due = at
		}
	}
	return &r
}
