package approvals

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// question is an escalation as the rules look at it.
func (a *Approvals) question(s *session.State, side, by performatives.Agent, body *performatives.EscalateBody, offer *session.Offer, at time.Time) escalation.Ask {
	card, _ := a.o.Registry.Card(side)
	urgency := escalation.Urgency(body.Urgency)
	deciders := a.o.Registry.Deciders(side.Organisation())
	for _, human := range a.rules.Load().Humans(side.Organisation()) {
		if _, registered := a.o.Registry.Card(human); a.o.Dev && !registered {
			member, _ := a.o.Registry.Member(human)
			deciders = append(deciders, member)
		}
	}
	deciders = slices.DeleteFunc(deciders, func(m performatives.Member) bool { return s.Delegated(m.Agent, at) })
	return escalation.Ask{
		At: at, Org: side.Organisation(), By: by, Urgency: urgency, Reason: body.Reason, Capabilities: card.Capabilities,
		Amount:   func(paths []string) *escalation.Amount { return s.AmountAtStake(offer, paths) },
		Deciders: deciders, Within: urgency.Within(s.Policy),
	}
}

// Route adds to an event the route that its act is judged by: the one that the rules give an ESCALATE
// now, and for a ruling the escalation's own if it was transferred since. It also adds the humans who
// may decide, so that a refusal can name them.
func (a *Approvals) Route(s *session.State, e *session.Event) {
	m := e.Message
	side := s.SideOf(m.Sender, e.At)
	org := side.Organisation()
	if offer, confirms := s.ToConfirm(m); confirms {
		a.routesToConfirm(s, e, offer, side)
		return
	}
	if o, delivered := s.DeliveryTo(m); delivered {
		if route := a.ToAccept(s, o, side, m.Sender, e.At); route != nil {
			route.Organisation = org
			sealNames(s, route)
			e.ConfirmedBy(route)
			a.knowDeciders(e, org)
		}
		return
	}
	if body, ok := m.Body.(*performatives.EscalateBody); ok {
		question := a.question(s, side, m.Sender, body, s.AtStake(body, side, e.At), e.At)
		e.Route, _ = a.rules.Load().Route(question)
		sealNames(s, e.Route)
	} else {
		open := s.EscalationFor(m)
		if open == nil || !m.Sender.IsHuman() {
			return
		}
		org = open.Org
		e.Route = a.transferred(open)
	}
	a.knowDeciders(e, org)
}

// Transferred is the route of the escalation that a human may decide, where it was transferred
// since it was opened.
func (a *Approvals) Transferred(s *session.State, human performatives.Agent) *performatives.Route {
	open := s.EscalationOf(human.Organisation())
	if open == nil || !human.IsHuman() {
		return nil
	}
	return a.transferred(open)
}

func (a *Approvals) transferred(open *escalation.Item) *performatives.Route {
	if r := a.cases.cached(open.ID).Route(open.Route); r != nil && !sameTurns(r, open.Route) {
		return r
	}
	return nil
}

// routesToConfirm adds those by which the organisations of both sides confirm an offer.
func (a *Approvals) routesToConfirm(s *session.State, e *session.Event, offer *session.Offer, accepts performatives.Agent) {
	by := map[performatives.Agent]performatives.Agent{offer.Side: offer.By, accepts: e.Message.Sender}
	for _, side := range []performatives.Agent{offer.Side, accepts} {
		org := side.Organisation()
		question := a.question(s, side, by[side], session.ConfirmationBody(offer.ID, nil), offer, e.At)
		if route, _ := a.rules.Load().Route(question); route != nil {
			route.Organisation = org
			sealNames(s, route)
			e.ConfirmedBy(route)
		}
		a.knowDeciders(e, org)
	}
}

// ToAccept is the route by which people of a side approve that it accepts a delivery; nil where its rules
// want none to.
func (a *Approvals) ToAccept(s *session.State, o *session.Obligation, side, by performatives.Agent, at time.Time) *performatives.Route {
	question := a.question(s, side, by, o.AcceptanceBody(), nil, at)
	question.Amount = func([]string) *escalation.Amount { return o.Worth() }
	route, _ := a.rules.Load().Route(question)
	return route
}

// sealNames has the transcript seal who is asked, until they act. Sessions of earlier formats name them.
func sealNames(s *session.State, r *performatives.Route) {
	if r != nil && s.Policy.Format >= 5 {
		r.Salt = rand.Text()
	}
}

func (a *Approvals) knowDeciders(e *session.Event, org performatives.Organisation) {
	for _, human := range a.o.Registry.Deciders(org) {
		if human.Agent != e.Message.Sender {
			e.Known.Add(human)
		}
	}
}

func sameTurns(a, b *performatives.Route) bool {
	return slices.EqualFunc(a.Levels, b.Levels, func(a, b performatives.Level) bool { return a.Due.Equal(b.Due) })
}

// plan is what the rules said besides the route when the escalation was opened.
func (a *Approvals) plan(s *session.State, of *escalation.Item) escalation.Plan {
	if of.Route == nil {
		return escalation.PlanFor(of)
	}
	question := a.question(s, of.Principal, of.By, of.Body, nil, of.At)
	question.Amount = func([]string) *escalation.Amount { return of.Amount }
	_, plan := a.rules.Load().Route(question)
	return plan
}

// CheckSeen refuses a decision on an approval that a colleague has claimed, or that has changed since
// the human saw it. The transcript knows of neither, so this is the last check of an act.
func (a *Approvals) CheckSeen(ctx context.Context, s *session.State, m *performatives.Message, at time.Time) error {
	open := s.EscalationFor(m)
	if open == nil || !m.Sender.IsHuman() {
		return nil
	}
	now, err := a.cases.read(ctx, open.Org, open.ID)
	if err != nil {
		return err
	}
	item := a.item(s, open, at)
	if held := now.HeldByAnother(m.Sender, at); held != nil && a.locks(&item, held) {
		return session.Refuse(session.WrongTurn, "%s has claimed it until %s: decide together, or ask for a release", held.By, api.Timestamp(held.Until)).
			With(map[string]any{"escalationId": open.ID, "claim": held, "escalation": item})
	}
	inform, ok := m.Body.(*performatives.InformBody)
	if !ok {
		return nil
	}
	ruling, ok := inform.Ruling()
	if !ok || (ruling.Revision == nil || *ruling.Revision == item.Revision) && (ruling.ViewHash == "" || ruling.ViewHash == item.ViewHash) {
		return nil
	}
	return session.Refuse(session.ChainConflict, "the escalation has changed since it was shown to you: look at it again").
		With(map[string]any{"escalationId": open.ID, "head": s.ChainHead(), "escalation": item})
}
