package escalation

import (
	"slices"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// A Kind is what happened around an item.
type Kind string

// The kinds of events. Those of the clock, and those that follow from the
// transcript, are the broker's; the others a human's.
const (
	Opened      Kind = "opened"
	Viewed      Kind = "viewed"
	Claimed     Kind = "claimed"
	Released    Kind = "released"
	Assigned    Kind = "assigned"
	Commented   Kind = "commented"
	Transferred Kind = "transferred"
	Reminded    Kind = "reminded"
	Reescalated Kind = "reescalated"
	Notified    Kind = "notified"
	Voted       Kind = "voted"
	Decided     Kind = "decided"
	Ended       Kind = "ended" // without a decision: expired, or closed
)

// An Event is one thing that happened around an item. None is in the transcript.
type Event struct {
	Kind  Kind                `json:"kind"`
	At    time.Time           `json:"at"`
	By    performatives.Agent `json:"by,omitzero"`    // absent: the broker, or an operator
	To    performatives.Agent `json:"to,omitzero"`    // of assigned and transferred
	Until time.Time           `json:"until,omitzero"` // of claimed
	Text  string              `json:"text,omitzero"`  // of commented; why transferred; the decision; of opened: the rule
	Level int                 `json:"level,omitzero"` // of reescalated, reminded and transferred: the index of who is asked
	Plan  *Plan               `json:"plan,omitzero"`  // of opened
}

// A Plan is what the rules say of a route besides who decides, which is the
// organisation's own affair and not pinned.
type Plan struct {
	Rule   string      `json:"rule,omitzero"`
	Names  []string    `json:"names,omitzero"`  // of the levels
	Remind []time.Time `json:"remind,omitzero"` // of each level, before it is due; zero is never
}

// A Claim holds an item for one who is at work on it, until the lease is over.
type Claim struct {
	By    performatives.Agent `json:"by"`
	Until time.Time           `json:"until"`
}

// A Raise is a transfer up the chain.
type Raise struct {
	Level int       `json:"level"`
	At    time.Time `json:"at"`
}

// A Desk is how the people around an item have it among themselves: a fold of
// its events.
type Desk struct {
	Events   uint64                            `json:"events"`   // that change what is shown
	Revision uint64                            `json:"revision"` // those of them that matter to who decides
	Claim    *Claim                            `json:"claim,omitzero"`
	Assignee performatives.Agent               `json:"assignee,omitzero"`
	Comments int                               `json:"comments,omitzero"`
	Views    map[performatives.Agent]time.Time `json:"views,omitzero"` // when each looked last
	Plan     Plan                              `json:"plan,omitzero"`
	Opened   bool                              `json:"opened,omitzero"`
	Raised   *Raise                            `json:"raised,omitzero"`
	Level    int                               `json:"level,omitzero"`    // the highest that was told it is its turn
	Reminded int                               `json:"reminded,omitzero"` // how many levels were
	Votes    int                               `json:"votes,omitzero"`
	Ended    string                            `json:"ended,omitzero"`
}

// With is the desk after an event.
func (d Desk) With(e Event) Desk {
	switch e.Kind {
	case Viewed:
		views := make(map[performatives.Agent]time.Time, len(d.Views)+1)
		for a, at := range d.Views {
			views[a] = at
		}
		views[e.By] = e.At
		d.Views = views
		return d
	case Notified:
		return d
	case Opened:
		d.Opened = true
		if e.Plan != nil {
			d.Plan = *e.Plan
		}
	case Claimed:
		d.Claim = &Claim{e.By, e.Until}
	case Released:
		d.Claim = nil
	case Assigned:
		d.Assignee = e.To
	case Commented:
		d.Comments++
		d.Revision++
	case Transferred:
		d.Claim, d.Assignee = nil, e.To
		if e.Level > d.Level {
			d.Raised, d.Level = &Raise{e.Level, e.At}, e.Level
		}
		d.Revision++
	case Reminded:
		d.Reminded = e.Level + 1
	case Reescalated: // whoever held it had the time
		d.Claim, d.Level = nil, max(d.Level, e.Level)
		d.Revision++
	case Voted:
		d.Votes++
		if d.Claim != nil && d.Claim.By == e.By {
			d.Claim = nil
		}
	case Decided, Ended:
		d.Claim, d.Ended = nil, e.Text
	}
	d.Events++
	return d
}

// Held is the claim in force at a time, nil for none.
func (d Desk) Held(at time.Time) *Claim {
	if d.Claim == nil || !at.Before(d.Claim.Until) {
		return nil
	}
	return d.Claim
}

// HeldByAnother is a claim in force of somebody else.
func (d Desk) HeldByAnother(by performatives.Agent, at time.Time) *Claim {
	if c := d.Held(at); c != nil && c.By != by {
		return c
	}
	return nil
}

// Route is the item's route, on which a level has its turn already if the item
// was transferred to it.
func (d Desk) Route(r *performatives.Route) *performatives.Route {
	if r == nil || d.Raised == nil {
		return r
	}
	return Advance(*r, d.Raised.Level, d.Raised.At)
}

// Missing is the first event that the item and the clock have brought about and
// that is not noted yet: nothing that the desk knows of itself is lost, whoever
// stopped where.
func (d Desk) Missing(i *Item, plan func() Plan, at time.Time) (Event, bool) {
	switch {
	case !d.Opened:
		p := plan()
		return Event{Kind: Opened, At: i.At, By: i.By, Text: p.Rule, Plan: &p}, true
	case d.Votes < len(i.Votes):
		v := i.Votes[d.Votes]
		return Event{Kind: Voted, At: v.At, By: v.By, Text: v.Decision}, true
	case i.Open():
		if due := d.Due(i, at); len(due) > 0 {
			return due[0], true
		}
	case d.Ended == "":
		e := Event{Kind: Ended, At: i.End.At, By: i.End.By, Text: i.End.How}
		if i.End.How != EndClosed && i.End.How != EndExpired {
			e.Kind = Decided
		}
		return e, true
	}
	return Event{}, false
}

// Due are the events of the clock that have come due and are not noted yet:
// levels whose turn has come, and reminders of the level that is asked.
func (d Desk) Due(i *Item, at time.Time) []Event {
	if !i.Open() {
		return nil
	}
	levels, now := (&Item{Route: d.Route(i.Route), Due: i.Due}).Levels(), 0
	for now < len(levels)-1 && !at.Before(levels[now].Due) {
		now++
	}
	var due []Event
	for n := d.Level + 1; n <= now; n++ {
		due = append(due, Event{Kind: Reescalated, At: latest(levels[n-1].Due, i.At), Level: n})
	}
	if t := d.reminder(now); d.Reminded <= now && !t.IsZero() && !at.Before(t) {
		due = append(due, Event{Kind: Reminded, At: at, Level: now})
	}
	return due
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// reminder is when a level is to be reminded; zero is never.
func (d Desk) reminder(level int) time.Time {
	if level >= len(d.Plan.Remind) {
		return time.Time{}
	}
	return d.Plan.Remind[level]
}

// NextDue is when Due will have more to say, false for never.
func (d Desk) NextDue(i *Item, at time.Time) (time.Time, bool) {
	if !i.Open() {
		return time.Time{}, false
	}
	var times []time.Time
	levels := (&Item{Route: d.Route(i.Route), Due: i.Due}).Levels()
	for n, level := range levels {
		if n < len(levels)-1 {
			times = append(times, level.Due)
		}
		times = append(times, d.reminder(n))
	}
	times = slices.DeleteFunc(times, func(t time.Time) bool { return !t.After(at) })
	if len(times) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(times, time.Time.Compare), true
}
