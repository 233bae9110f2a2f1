package escalation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// An Ask is what rules need to know of an escalation.
type Ask struct {
	Org          performatives.Organisation
	By           performatives.Agent
	Urgency      Urgency
	Reason       string
	Capabilities []string // of the principal
	At           time.Time
	Amount       func(paths []string) *Amount // at stake
	Deciders     []performatives.Member       // humans of the organisation with the authority to decide
	Within       time.Duration                // from the session's policy
}

// Route determines who decides an escalation and by when. It is nil if nothing is
// configured for the organisation, and for a delivery if no rule wants a human to accept it.
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
	if ask.Reason == performatives.Delivered && len(rule.Match.Reason) == 0 {
		return nil, Plan{}
	}
	route, plan := &performatives.Route{Amounts: o.Amounts, NonMonetary: o.NonMonetary, ReasonToDeny: o.Deny.Required}, Plan{Rule: rule.Name, Reasons: o.Deny.Reasons}
	calendar, last, from := r.Calendars[o.Calendar], time.Duration(0), ask.At
	for n, asked := range append([]Asked{rule.Asked}, rule.Chain...) {
		within := asked.Due.of(ask.Urgency)
		switch {
		case within == 0 && n == 0:
			if within = o.Due.of(ask.Urgency); within == 0 {
				within = ask.Within
			}
		case within <= last: // as long as the previous level, once more
			within = 2 * last
		}
		who, _ := o.approvers(asked.Approvers, ask.Org) // Check has found no error
		level := performatives.Level{Approvers: who, Quorum: max(asked.Quorum, 1), Due: calendar.Add(ask.At, within).UTC()}
		route.Levels = append(route.Levels, level)
		plan.Names = append(plan.Names, named(asked.Level, n))
		plan.Remind = append(plan.Remind, reminder(from, level.Due, rule.Remind, o.Remind))
		last, from = within, level.Due
	}
	if ask.Reason == performatives.Delivered && suffices(&ask, amount, route) {
		return nil, Plan{}
	}
	skip(route, ask, amount)
	return route, plan
}

// PlanFor is the plan of an item without a route: one reminder.
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

// reminder is the time of a level's reminder, zero if it has none. The first of
// the given durations counts; the default is a quarter of the level's time.
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

// skip makes a level due at once if too few of it can approve, because they are
// not registered or their ceilings are too low. They are still asked: they can
// deny, or approve less.
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

// suffices counts a human who accepts a delivery, where the rules ask her for it, as one of those who have
// to approve, and reports whether she is enough.
func suffices(ask *Ask, amount *Amount, route *performatives.Route) bool {
	if !slices.ContainsFunc(ask.Deciders, func(m performatives.Member) bool { return m.Agent == ask.By && mayApprove(m, amount) }) {
		return false
	}
	for n := range route.Levels {
		if level := &route.Levels[n]; asks(*level, ask.By) {
			if level.Quorum--; n == 0 && level.Quorum == 0 {
				return true
			}
			level.Quorum = max(level.Quorum, 1)
		}
	}
	return false
}

// mayApprove reports whether a human has no ceiling, or one that lets her approve an amount, nil for none seen.
func mayApprove(m performatives.Member, amount *Amount) bool {
	if len(m.Limits) == 0 {
		return !m.Limited
	}
	return amount != nil && amount.Value <= Ceiling(m.Limits, currencyOf(amount.Currency, m.Limits))
}

func (m Match) matches(ask Ask, amount *Amount) bool {
	switch {
	case ask.Reason == performatives.Delivered && len(m.Reason) == 0: // only a rule that names deliveries is about them
		return false
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
		(m.Amount.Currency == "" || amount.Currency == "" || strings.EqualFold(amount.Currency, m.Amount.Currency))
}

// Humans returns the humans in an organisation's rules.
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
	who, _ := o.approvers(names, org) // Check has found no error
	return who
}

// HasRole reports whether somebody has one of these roles in its organisation.
func (r *Rules) HasRole(a performatives.Agent, roles ...string) bool {
	o := r.organisation(a.Organisation())
	if o == nil || !a.IsHuman() {
		return false
	}
	for _, role := range roles {
		if who, _ := o.approvers(o.Roles[role], a.Organisation()); slices.Contains(who, a) { // Check has found no error
			return true
		}
	}
	return false
}

// WithRole are the humans of an organisation who have a role.
func (r *Rules) WithRole(org performatives.Organisation, role string) []performatives.Agent {
	o := r.organisation(org)
	if o == nil {
		return nil
	}
	who, _ := o.approvers(o.Roles[role], org) // Check has found no error
	return who
}

// RemindDue is how long before something is due the people of an organisation are told; 0 is never.
func (r *Rules) RemindDue(org performatives.Organisation) time.Duration {
	o := r.organisation(org)
	if o == nil || o.RemindDue == nil {
		return 0
	}
	return time.Duration(*o.RemindDue)
}

// Groups calls each for every named group of approvers.
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
