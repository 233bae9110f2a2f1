package session

import (
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Escalate, escalates, escalated)

func escalates(t *Turn) error {
	body := t.Message.Body.(*performatives.EscalateBody) //nolint:errcheck,forcetypeassert // its act says so
	if err := t.newID(string(t.Message.ID)); err != nil {
		return err
	}
	if body.ReferenceID != "" && (t.Offer == nil || t.Offer.Kind == anInvitation) {
		return unknownReference(body.ReferenceID, "proposal or commitment")
	}
	return nil
}

// escalated pauses the session and gives the humans who may decide for the
// organisation of the principal concerned their part in it.
func escalated(t *Turn) {
	body := t.Message.Body.(*performatives.EscalateBody) //nolint:errcheck,forcetypeassert // its act says so
	item := &escalation.Item{
		ID: escalation.ID(t.Message.ID), By: t.From.Agent, Principal: t.Side, Org: t.Side.Organisation(),
		Body: body, At: t.At, Sequence: t.Next,
		Due: t.At.Add(escalation.Urgency(body.Urgency).Within(t.Policy)),
	}
	t.kinds = t.kinds.With(string(item.ID), anEscalation)
	t.items = t.items.With(item.ID, item)
	t.deciders = t.deciders.With(item.Org, true)
	t.open, t.newest, t.resumeTo, t.pausedAt = item, item, t.Phase, t.At
	for _, a := range slices.Sorted(maps.Keys(t.event.Known)) {
		m := t.event.Known[a]
		p, has := t.hasPart(a)
		if !escalation.MayDecide(m, item.Org) || has && (p.Role == Delegate || sameMember(p.Member, m)) {
			continue
		}
		if p.Member = m; !has {
			p.Role = Approver
		}
		t.enter(p)
	}
}

// endItem closes the open escalation and banks the time that it took.
func (t *Turn) endItem(by performatives.Agent, how string) {
	item := *t.open
	item.End = escalation.End{By: by, How: how, At: t.At, Sequence: t.Next, Message: t.Message.ID, Digest: t.decisionDigest()}
	t.items = t.items.With(item.ID, &item)
	t.banked = t.bankedAt(t.At)
	t.open, t.newest = nil, &item
}

// decisionDigest is what makes two rulings the same decision: their data.
func (t *Turn) decisionDigest() [32]byte {
	if inform, ok := t.Message.Body.(*performatives.InformBody); ok {
		return sha256.Sum256(inform.Data)
	}
	return [32]byte{}
}
