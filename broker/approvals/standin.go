package approvals

import (
	"cmp"
	"slices"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// standIn is the action that assigns an escalation, when it is opened and when a level's turn comes, to
// the human who stands in for one of those who are asked. It gives nobody a right.
func (a *Approvals) standIn(c escalation.Case, of *escalation.Item) (e escalation.Action, some bool) {
	if !c.Opened || !of.Open() || c.StandIns > c.Level {
		return e, false
	}
	levels, at := (&escalation.Item{Route: c.Route(of.Route), Due: of.Due}).Levels(), of.At
	if c.Level > 0 && levels[c.Level-1].Due.After(at) {
		at = levels[c.Level-1].Due
	}
	humans := a.o.Registry.Deciders(of.Org)
	slices.SortFunc(humans, func(x, y performatives.Member) int { return cmp.Compare(x.Agent, y.Agent) })
	for _, absent := range humans {
		if !asks(levels[c.Level:c.Level+1], absent.Agent) {
			continue
		}
		if to := a.standInOf(absent.Agent, at); to != of.By && a.canStandIn(of.Org, to, at) && asks(levels[:c.Level+1], to) {
			return escalation.Action{Kind: escalation.Assigned, At: at, To: to, Absent: absent.Agent}, true
		}
	}
	return e, false
}

// asks reports whether one of the levels asks a human.
func asks(levels []performatives.Level, human performatives.Agent) bool {
	return slices.ContainsFunc(levels, func(l performatives.Level) bool {
		return len(l.Approvers) == 0 || slices.Contains(l.Approvers, human)
	})
}

// standInOf is who stands in for a human at a time, "" for nobody.
func (a *Approvals) standInOf(human performatives.Agent, at time.Time) performatives.Agent {
	card, _ := a.o.Registry.Card(human)
	if away := card.Registry.Away; away.At(at) {
		return away.To
	}
	return ""
}

// canStandIn reports whether a human may decide for the organisation, and is not away.
func (a *Approvals) canStandIn(org performatives.Organisation, human performatives.Agent, at time.Time) bool {
	member, known := a.o.Registry.Member(human)
	return known && escalation.MayDecide(member, org) && a.standInOf(human, at) == ""
}

// replaceAbsent has an action that hands an escalation to somebody who is away hand it to the stand-in
// instead, who has to be among those who are asked by then.
func (a *Approvals) replaceAbsent(item *api.EscalationItem, e *escalation.Action, at time.Time) {
	if e.To == "" {
		return
	}
	to := a.standInOf(e.To, at)
	level, asked := levelAsking(item, to)
	if asked && level <= max(e.Level, item.Route.Level) && to != item.By && a.canStandIn(item.Organisation, to, at) {
		e.To, e.Absent = to, e.To
	}
}

// awayNow is a human's absence if it has begun and is not over.
func awayNow(card api.Card, now time.Time) *api.Away {
	if !card.Registry.Away.At(now) {
		return nil
	}
	return card.Registry.Away
}
