package escalation

import (
	"slices"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// Levels are those who are asked, one after the other. Without a route that is
// one level: everybody, and one of them is enough.
func (i *Item) Levels() []performatives.Level {
	if i.Route == nil || len(i.Route.Levels) == 0 {
		return []performatives.Level{{Quorum: 1, Due: i.Due}}
	}
	return i.Route.Levels
}

// Level is the index of the level whose turn came last by a time. Who was asked
// before may still decide.
func (i *Item) Level(at time.Time) int {
	levels := i.Levels()
	for n, level := range levels {
		if at.Before(level.Due) {
			return n
		}
	}
	return len(levels) - 1
}

// asks tells whether a level asks a human of the organisation.
func asks(level performatives.Level, a performatives.Agent) bool {
	return len(level.Approvers) == 0 || slices.Contains(level.Approvers, a)
}

// Turn is the index of the first level that asks a human who may decide, false
// for one whom the route does not name.
func (i *Item) Turn(a performatives.Agent) (level int, asked bool) {
	n := slices.IndexFunc(i.Levels(), func(level performatives.Level) bool { return asks(level, a) })
	return n, n >= 0
}

// Asks tells whether a member may decide by now: a human of the organisation
// who may, and whose level's turn has come.
func (i *Item) Asks(m performatives.Member, at time.Time) bool {
	level, asked := i.Turn(m.Agent)
	return MayDecide(m, i.Org) && asked && level <= i.Level(at)
}

// Names tells whether the route names a member at any level.
func (i *Item) Names(m performatives.Member) bool {
	_, asked := i.Turn(m.Agent)
	return MayDecide(m, i.Org) && asked
}

// Approves tells a ruling that lets the agent go ahead from one that does not.
func Approves(decision string) bool {
	return decision == performatives.Approved || decision == performatives.Modified
}

// Missing is how many approvals are missing by now: at the level that is
// nearest to its quorum, of those whose turn has come. Each level counts the
// approvals of those whom it asks, so that to wait a level out never makes the
// word of fewer of them enough.
func (i *Item) Missing(at time.Time) int {
	levels := i.Levels()
	least := levels[0].Quorum
	for _, level := range levels[:i.Level(at)+1] {
		least = min(least, max(level.Quorum-i.Approved(level), 0))
	}
	return least
}

// Approved counts the approvals of those whom a level asks.
func (i *Item) Approved(level performatives.Level) int {
	n := 0
	for _, v := range i.Votes {
		if Approves(v.Decision) && asks(level, v.By) {
			n++
		}
	}
	return n
}

// Advance is a route on which a level has its turn from a time on, if not
// before: how an item is transferred up the chain. Its end stays where it is.
func Advance(r performatives.Route, level int, at time.Time) *performatives.Route {
	r.Levels = slices.Clone(r.Levels)
	for n := range r.Levels[:min(max(level, 0), len(r.Levels)-1)] {
		if r.Levels[n].Due.After(at) {
			r.Levels[n].Due = at
		}
	}
	return &r
}
