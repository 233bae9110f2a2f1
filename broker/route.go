package broker

import (
	"context"
	"slices"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// ask is an escalation as the rules look at it.
func (b *Broker) ask(l *live, by performatives.Agent, body *performatives.EscalateBody, offer *session.Offer) escalation.Ask {
	side := l.state.SideOf(by)
	card, _ := b.registry.Card(side)
	urgency := escalation.Urgency(body.Urgency)
	deciders := b.registry.Deciders(side.Organisation())
	for _, a := range b.Escalations.Humans(side.Organisation()) {
		if _, registered := b.registry.Card(a); b.Dev && !registered { // there, whoever comes may decide
			newcomer, _ := b.registry.Member(a)
			deciders = append(deciders, newcomer)
		}
	}
	return escalation.Ask{
		Org: side.Organisation(), By: by, Urgency: urgency, Reason: body.Reason, Capabilities: card.Capabilities,
		Amount:   func(paths []string) *escalation.Amount { return l.state.AmountAtStake(offer, paths) },
		Deciders: deciders, Within: urgency.Within(l.state.Policy),
	}
}

// routeEvent is the route that an act is judged by: of an ESCALATE, what the rules
// come to now; of a ruling, the item's own where it was transferred since. It
// also gathers who else may decide, for a refusal that tells.
func (b *Broker) routeEvent(l *live, m *performatives.Message, e *session.Event) {
	if body, ok := m.Body.(*performatives.EscalateBody); ok {
		ask := b.ask(l, m.Sender, body, l.state.AtStake(body, l.state.SideOf(m.Sender), e.At))
		ask.At = e.At
		e.Route, _ = b.Escalations.Route(ask)
		return
	}
	open := l.state.Escalation()
	if open == nil || !m.Sender.IsHuman() {
		return
	}
	for _, human := range b.registry.Deciders(open.Org) {
		if human.Agent != m.Sender {
			e.Known.Add(human)
		}
	}
	if r := b.desks.of(open.ID).Route(open.Route); r != nil && !sameTurns(r, open.Route) {
		e.Route = r
	}
}

func sameTurns(a, b *performatives.Route) bool {
	return slices.EqualFunc(a.Levels, b.Levels, func(a, b performatives.Level) bool { return a.Due.Equal(b.Due) })
}

// plan is what the rules said besides the route, when the item was opened.
func (b *Broker) plan(l *live, of *escalation.Item) escalation.Plan {
	if of.Route == nil {
		return escalation.PlanFor(of)
	}
	ask := b.ask(l, of.By, of.Body, nil)
	ask.At, ask.Amount = of.At, func([]string) *escalation.Amount { return of.Amount }
	_, plan := b.Escalations.Route(ask)
	return plan
}

// checkSeen refuses a decision on an item that a colleague holds, or that is not
// any more what the human was shown. The transcript does not know of either, so
// this is asked last, of an act that would be heard.
func (b *Broker) checkSeen(ctx context.Context, l *live, m *performatives.Message) error {
	open := l.state.Escalation()
	if open == nil || !m.Sender.IsHuman() {
		return nil
	}
	at, err := b.desks.read(ctx, open.Org, open.ID)
	if err != nil {
		return err
	}
	item := b.item(l, open)
	if held := at.desk.HeldByAnother(m.Sender, b.clock(l)); held != nil {
		return session.Refuse(session.WrongTurn, "%s has claimed it until %s: decide together, or ask for a release", held.By, stamp(held.Until)).
			With(map[string]any{"escalationId": open.ID, "claim": held, "escalation": item})
	}
	inform, ok := m.Body.(*performatives.InformBody)
	if !ok {
		return nil
	}
	ruling, ok := inform.Ruling()
	if !ok || (ruling.Revision == nil || *ruling.Revision == item.Revision) && (ruling.Shown == "" || ruling.Shown == item.Shown) {
		return nil
	}
	return session.Refuse(session.ChainConflict, "the escalation has changed since it was shown to you: look at it again").
		With(map[string]any{"escalationId": open.ID, "head": l.state.ChainHead(), "escalation": item})
}
