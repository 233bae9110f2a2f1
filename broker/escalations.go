package broker

import (
	"context"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/wire"
)

// escalationList is for humans who may decide; agents see those of their sessions.
func (b *Broker) escalationList(ctx context.Context, c caller, q wire.ListEscalations) (wire.Escalations, error) {
	switch q.Status {
	case "", "open", "resolved", "all":
	default:
		return wire.Escalations{}, session.Refuse(session.MalformedEnvelope, "status is open, resolved or all")
	}
	found := wire.Escalations{Escalations: []wire.EscalationItem{}}
	for _, item := range b.items.of("", q.Status) {
		if item.Deadline+string(item.ID) <= q.Cursor || !b.maySeeItem(ctx, c, item) {
			continue
		}
		if len(found.Escalations) == page(q.Limit) {
			last := found.Escalations[len(found.Escalations)-1]
			found.Next = last.Deadline + string(last.ID)
			break
		}
		found.Escalations = append(found.Escalations, item)
	}
	return found, nil
}

func (b *Broker) maySeeItem(ctx context.Context, c caller, item wire.EscalationItem) bool {
	if c.operator {
		return true
	}
	if member, ok := b.registry.member(c.agent); ok && member.Authority == performatives.AuthorityDecide && c.agent.Organisation() == item.Organisation {
		return true
	}
	if !b.index.names(item.Session, c.agent) && !b.audits(c) {
		return false // without reading the sessions of strangers
	}
	return b.seen(ctx, c, item.Session, func(*live) error { return nil }) == nil
}

func (b *Broker) escalationGet(ctx context.Context, c caller, q wire.EscalationRef) (wire.EscalationItem, error) {
	unknown := session.Refuse(session.UnknownSession, "there is no such escalation, or you have no part in it")
	var found wire.EscalationItem
	for _, item := range b.items.of("", "all") {
		if string(item.ID) == q.Escalation && b.maySeeItem(ctx, c, item) {
			found = item
		}
	}
	if found.ID == "" {
		return found, unknown
	}
	messages, err := b.sessionMessages(ctx, caller{operator: true}, wire.ListMessages{Session: found.Session, Limit: wire.MaxPage})
	found.Transcript, found.Next = messages.Messages, messages.Next
	return found, err
}
