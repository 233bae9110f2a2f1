package escalation

import (
	"fmt"
	"slices"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// An Ask is an escalation, as far as rules look at it.
type Ask struct {
	Org          performatives.Organisation
	By           performatives.Agent
	Urgency      Urgency
	Reason       string
	Capabilities []string // of the principal for whom is asked
	At           time.Time
	Amount       func(paths []string) *Amount // at stake
	Deciders     []performatives.Member       // humans of the organisation who may decide
	Within       time.Duration                // by the session's own policy
}

// Route works out who decides an escalation, and until when. Without anything
// configured for the organisation there is no route.
func (r *Rules) Route(ask Ask) (*performatives.Route, Plan) {
	o := r.organisation(ask.Org)
	if o == nil {
		return nil, Plan{}
	}
	amount := ask.Amount(o.Amounts)
	rule := &Rule{}
	for _, candidate := range o.Rules {
		if candidate.Match.matches(ask, amount) {
			rule = candidate
			break
		}
	}
	route, plan := &performatives.Route{Amounts: o.Amounts}, Plan{Rule: rule.Name}
	calendar, last, from := r.Calendars[o.Calendar], time.Duration(0), ask.At
	for n, asked := range append([]Asked{rule.Asked}, rule.Chain...) {
		within := asked.Due.of(ask.Urgency)
		switch {
		case within == 0 && n == 0:
			if within = o.Due.of(ask.Urgency); within == 0 {
				within = ask.Within
			}
		case within <= last: // as long again as the level before
			within = 2 * last
		}
		who, _ := o.approvers(asked.Approvers, ask.Org) // Check has seen to it
		level := performatives.Level{Approvers: who, Quorum: max(asked.Quorum, 1), Due: calendar.Add(ask.At, within).UTC()}
		route.Levels = append(route.Levels, level)
		plan.Names = append(plan.Names, named(asked.Level, n))
		plan.Remind = append(plan.Remind, reminder(from, level.Due, rule.Remind, o.Remind))
		last, from = within, level.Due
	}
	skip(route, ask, amount)
	return route, plan
}

// PlanFor is the plan of an item without a route: a reminder.
func PlanFor(i *Item) Plan { return Plan{Remind: []time.Time{reminder(i.At, i.Due)}} }

func (r *Rules) organisation(org performatives.Organisation) *Organisation {
	if r == nil {
		return nil
	}
	return r.Organisations[org]
}

func named(name string, n int) string {
	if name == "" {
		return fmt.Sprintf("level %d", n+1)
	}
	return name
}

// reminder is a while before a level is due, if that is in its time.
func reminder(from, due time.Time, before ...*Duration) time.Time {
	while := due.Sub(from) / 4
	for _, b := range before {
		if b != nil {
			while = time.Duration(*b)
			break
		}
	}
	if at := due.Add(-while); while > 0 && at.After(from) {
		return at
	}
	return time.Time{}
}

// skip gives the next level its turn at once where too few of a level are able
// to approve: for want of registered approvers, or of a ceiling that is high
// enough. They are asked all the same; they can deny, and approve less.
func skip(route *performatives.Route, ask Ask, amount *Amount) {
	for n := range route.Levels[:len(route.Levels)-1] {
		level := &route.Levels[n]
		able := 0
		for _, m := range ask.Deciders {
			if asks(*level, m.Agent) && m.Agent != ask.By &&
				(amount == nil || amount.Value <= Ceiling(m.Limits, currencyOf(amount.Currency, m.Limits))) {
				able++
			}
		}
		if able >= level.Quorum {
			return
		}
		level.Due = ask.At
	}
}

func (m Match) matches(ask Ask, amount *Amount) bool {
	switch {
	case len(m.Urgency) > 0 && !slices.Contains(m.Urgency, ask.Urgency):
		return false
	case len(m.Reason) > 0 && !slices.Contains(m.Reason, ask.Reason):
		return false
	case len(m.Capability) > 0 && !slices.ContainsFunc(m.Capability, func(c string) bool { return slices.Contains(ask.Capabilities, c) }):
		return false
	case m.Amount == nil:
		return true
	case amount == nil:
		return m.Amount.Unseen
	}
	return amount.Value >= m.Amount.Min && (m.Amount.Max == nil || amount.Value <= *m.Amount.Max) &&
		(m.Amount.Currency == "" || amount.Currency == "" || amount.Currency == m.Amount.Currency)
}

// Humans are those whom an organisation's rules name.
func (r *Rules) Humans(org performatives.Organisation) []performatives.Agent {
	o := r.organisation(org)
	if o == nil {
		return nil
	}
	var names []string
	for group := range o.Groups {
		names = append(names, group)
	}
	for _, rule := range o.Rules {
		for _, asked := range append([]Asked{rule.Asked}, rule.Chain...) {
			names = append(names, asked.Approvers...)
		}
	}
	slices.Sort(names)
	who, _ := o.approvers(names, org) // Check has seen to it
	return who
}

// Groups are the named groups of approvers of each organisation.
func (r *Rules) Groups(each func(org performatives.Organisation, group string, members []performatives.Agent)) {
	if r == nil {
		return
	}
	for org, o := range r.Organisations {
		for name, members := range o.Groups {
			each(org, name, members)
		}
	}
}
