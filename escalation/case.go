package escalation

import (
	"slices"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// A Kind is what an action does.
type Kind string

// The kinds of actions. Some are a human's; the broker adds those of the clock and of the transcript.
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
	Unsealed    Kind = "unsealed"
)

// An Action is one thing that was done about an escalation, in its case log. None is in the transcript.
type Action struct {
	Kind  Kind                `json:"kind"`
	At    time.Time           `json:"at"`
	By    performatives.Agent `json:"by,omitzero"`    // absent: the broker or an operator
	To    performatives.Agent `json:"to,omitzero"`    // of assigned and transferred
	Until time.Time           `json:"until,omitzero"` // of claimed
	Text  string              `json:"text,omitzero"`  // of commented; why transferred; the decision; of opened: the rule
	Level int                 `json:"level,omitzero"` // of reescalated, reminded and transferred: index of the level
	Plan  *Plan               `json:"plan,omitzero"`  // of opened

	Absent performatives.Agent `json:"absent,omitzero"` // whom To stands in for
	Sealer performatives.Agent `json:"sealer,omitzero"` // of unsealed: whose sealed parts To may open now
}

// A Plan is what the rules say of a route besides who decides. It is the organisation's own affair, so
// no transcript has it.
type Plan struct {
	Rule    string      `json:"rule,omitzero"`
	Names   []string    `json:"names,omitzero"`   // of the levels
	Remind  []time.Time `json:"remind,omitzero"`  // of each level, before it is due; zero is never
	Reasons []string    `json:"reasons,omitzero"` // to deny, offered to humans
}

// A Claim reserves an escalation for one human, until the lease is over.
type Claim struct {
	By    performatives.Agent `json:"by"`
	Until time.Time           `json:"until"`
}

// A Raise is a transfer up the chain.
type Raise struct {
	Level int       `json:"level"`
	At    time.Time `json:"at"`
}

// A Case is what humans and the clock have done about an escalation: a fold of its case log, which is
// not in the transcript.
type Case struct {
	Actions  uint64                            `json:"events"`   // so far, without views and notifications
	Revision uint64                            `json:"revision"` // those that a decision has to have seen
	Claim    *Claim                            `json:"claim,omitzero"`
	Assignee performatives.Agent               `json:"assignee,omitzero"`
	Comments int                               `json:"comments,omitzero"`
	Views    map[performatives.Agent]time.Time `json:"views,omitzero"` // when each looked last
	Plan     Plan                              `json:"plan,omitzero"`
	Opened   bool                              `json:"opened,omitzero"`
	Raised   *Raise                            `json:"raised,omitzero"`
	Level    int                               `json:"level,omitzero"`    // the highest that was asked
	Reminded int                               `json:"reminded,omitzero"` // how many levels
	StandIns int                               `json:"standIns,omitzero"` // how many levels no stand-in is to be found for
	Votes    int                               `json:"votes,omitzero"`
	Ended    string                            `json:"ended,omitzero"`
	Unsealed []performatives.Agent             `json:"unsealed,omitzero"` // whose sealed parts the arbiter may open; never changed
}

// With is the case after an action.
func (c Case) With(e Action) Case {
	switch e.Kind {
	case Viewed:
		views := make(map[performatives.Agent]time.Time, len(c.Views)+1)
		for a, at := range c.Views {
			views[a] = at
		}
		views[e.By] = e.At
		c.Views = views
		return c
	case Notified:
		return c
	case Opened:
		c.Opened = true
		if e.Plan != nil {
			c.Plan = *e.Plan
		}
	case Claimed:
		c.Claim = &Claim{e.By, e.Until}
	case Released:
		c.Claim = nil
	case Assigned:
		c.Assignee = e.To
		c.StandIns = c.Level + 1
	case Commented:
		c.Comments++
		c.Revision++
	case Transferred:
		c.Claim, c.Assignee = nil, e.To
		if e.Level > c.Level {
			c.Raised, c.Level = &Raise{e.Level, e.At}, e.Level
		}
		if e.To != "" {
			c.StandIns = c.Level + 1
		}
		c.Revision++
	case Reminded:
		c.Reminded = e.Level + 1
	case Reescalated: // ends a claim: whoever had it did not answer in time
		c.Claim, c.Level = nil, max(c.Level, e.Level)
		c.Revision++
	case Voted:
		c.Votes++
		if c.Claim != nil && c.Claim.By == e.By {
			c.Claim = nil
		}
	case Unsealed:
		c.Unsealed = append(slices.Clip(c.Unsealed), e.Sealer)
	case Decided, Ended:
		c.Claim, c.Ended = nil, e.Text
	}
	c.Actions++
	return c
}

// Held is the claim in force at a time, nil for none.
func (c Case) Held(at time.Time) *Claim {
	if c.Claim == nil || !at.Before(c.Claim.Until) {
		return nil
	}
	return c.Claim
}

// HeldByAnother is the claim of somebody else in force at a time, nil for none.
func (c Case) HeldByAnother(by performatives.Agent, at time.Time) *Claim {
	if held := c.Held(at); held != nil && held.By != by {
		return held
	}
	return nil
}

// Route is the item's route. A level to which the item was transferred has its turn already.
func (c Case) Route(r *performatives.Route) *performatives.Route {
	if r == nil || c.Raised == nil {
		return r
	}
	return Advance(*r, c.Raised.Level, c.Raised.At)
}

// Missing is the first action of the transcript or the clock that the case log lacks. Whoever calls it,
// and whenever, gets the same.
func (c Case) Missing(i *Item, plan func() Plan, at time.Time) (Action, bool) {
	switch {
	case !c.Opened:
		p := plan()
		return Action{Kind: Opened, At: i.At, By: i.By, Text: p.Rule, Plan: &p}, true
	case c.Votes < len(i.Votes):
		v := i.Votes[c.Votes]
		return Action{Kind: Voted, At: v.At, By: v.By, Text: v.Decision}, true
	case i.Open():
		if due := c.Due(i, at); len(due) > 0 {
			return due[0], true
		}
	case c.Ended == "":
		e := Action{Kind: Ended, At: i.End.At, By: i.End.By, Text: i.End.How}
		if i.End.How != EndClosed && i.End.How != EndExpired {
			e.Kind = Decided
		}
		return e, true
	}
	return Action{}, false
}

// Due are the actions of the clock that the case log lacks: levels whose turn has come, and a reminder
// of the level that is asked.
func (c Case) Due(i *Item, at time.Time) []Action {
	if !i.Open() {
		return nil
	}
	levels, now := (&Item{Route: c.Route(i.Route), Due: i.Due}).Levels(), 0
	for now < len(levels)-1 && !at.Before(levels[now].Due) {
		now++
	}
	var due []Action
	for n := c.Level + 1; n <= now; n++ {
		due = append(due, Action{Kind: Reescalated, At: latest(levels[n-1].Due, i.At), Level: n})
	}
	if t := c.reminder(now); c.Reminded <= now && !t.IsZero() && !at.Before(t) {
		due = append(due, Action{Kind: Reminded, At: at, Level: now})
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
func (c Case) reminder(level int) time.Time {
	if level >= len(c.Plan.Remind) {
		return time.Time{}
	}
	return c.Plan.Remind[level]
}

// NextDue is when Due has its next action, false for never.
func (c Case) NextDue(i *Item, at time.Time) (time.Time, bool) {
	if !i.Open() {
		return time.Time{}, false
	}
	var times []time.Time
	levels := (&Item{Route: c.Route(i.Route), Due: i.Due}).Levels()
	for n, level := range levels {
		if n < len(levels)-1 {
			times = append(times, level.Due)
		}
		times = append(times, c.reminder(n))
	}
	times = slices.DeleteFunc(times, func(t time.Time) bool { return !t.After(at) })
	if len(times) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(times, time.Time.Compare), true
}
