package session

import (
	"slices"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Delegate, deed{refers: delegates, happens: delegated})

func delegates(t *Command) error {
	body := t.Message.Body.(*performatives.DelegateBody) //nolint:errcheck,forcetypeassert // its act says so
	if err := t.newID(string(t.Message.ID)); err != nil {
		return err
	}
	if body.ReferenceID != "" && (t.Offer == nil || !t.Offer.IsProposal()) {
		return unknownReference(body.ReferenceID, "proposal")
	}
	if err := t.mayTake(body.TargetAgent); err != nil {
		return err
	}
	return t.narrows(body)
}

// narrows makes the grant that the delegator asks for out of what it holds. That
// a delegate asks for more than that is a matter of its authority.
func (t *Command) narrows(body *performatives.DelegateBody) error {
	grant, err := delegation.Narrow(t.Grant, delegation.Grant{
		ID: delegation.ID(t.Message.ID), From: t.From.Agent, To: body.TargetAgent,
		Authority: delegation.ParseAuthority(body.Authority), Scope: body.Scope,
		Line: t.line(), Until: t.until(body.ValidUntil), Sequence: t.Next,
	}, body.MaxDepth)
	if err != nil {
		return t.exceeded(err)
	}
	t.granted = &grant
	return nil
}

// mayTake refuses a target that cannot act for the sender: who has a part of
// its own here, who stands for another side, or who holds a delegation already.
func (t *Command) mayTake(target performatives.Agent) error {
	if p, ok := t.parties.Get(target); ok {
		if p.Role != Delegate {
			return Refuse(Unauthorized, "%s has a part of its own in this session and cannot act for another", target)
		}
		if g, _ := t.grants.Get(p.Grant); delegation.Standing(g, t.Now, t.grants.Get) == nil {
			return Refuse(Duplicate, "%s holds a delegation in this session already; WITHDRAW it first", target).
				With(map[string]any{"delegationId": g.ID})
		}
	}
	m, registered := t.event.Known.Get(target)
	if !registered {
		return unknownAgent(target)
	}
	if org := target.Organisation(); org != t.Side.Organisation() && escalation.MayDecide(m, org) && t.partyTo(org) && !t.Before(2) {
		return Refuse(Unauthorized, "%s may decide for %s, which is another party here: delegate to somebody who does not", target, org).
			With(map[string]any{"targetAgent": target, "organisation": org})
	}
	return nil
}

// partyTo reports whether a principal of the session is of an organisation.
func (t *Command) partyTo(org performatives.Organisation) bool {
	return slices.ContainsFunc(t.roll, func(a performatives.Agent) bool {
		p, _ := t.parties.Get(a)
		return p.Role <= Invitee && a.Organisation() == org
	})
}

func delegated(t *Command) {
	g := *t.granted
	t.grants = t.grants.With(g.ID, g)
	t.grantOrder = append(slices.Clip(t.grantOrder), g.ID)
	member, _ := t.event.Known.Get(g.To)
	member.Authority = g.Authority.String()
	t.enter(Party{Member: member, Role: Delegate, Grant: g.ID})
}

// answersGrant judges ACCEPT and REJECT of a delegation: its target's to give, once.
func (t *Command) answersGrant() error {
	switch {
	case t.about.From == t.From.Agent:
		return Refuse(OwnProposal, "it is your own delegation; its target answers it, and WITHDRAW takes it back")
	case t.about.To != t.From.Agent:
		return Refuse(Unauthorized, "the delegation is offered to %s, who answers it", t.about.To)
	case t.about.Status != delegation.Offered:
		return Refuse(ProposalNotOpen, "the delegation is %s", t.about.Status).With(map[string]any{"referenceId": t.about.ID, "status": t.about.Status.String()})
	}
	return nil
}

// withdrawsGrant lets the delegate, its delegator, and those above end a delegation.
func (t *Command) withdrawsGrant() error {
	if t.about.Status == delegation.Withdrawn || t.about.Status == delegation.Declined {
		return Refuse(ProposalNotOpen, "the delegation is %s", t.about.Status).With(map[string]any{"referenceId": t.about.ID, "status": t.about.Status.String()})
	}
	me := t.From.Agent
	if t.about.To == me || t.about.Principal == me {
		return nil
	}
	for g, ok := *t.about, true; ok; g, ok = t.grants.Get(g.Parent) {
		if g.From == me {
			return nil
		}
	}
	return notYours(string(t.about.ID))
}

func (t *Command) settleGrant(status delegation.Status) {
	g := *t.about
	g.Status = status
	t.grants = t.grants.With(g.ID, g)
	t.unawait(string(g.ID))
}
