package session

import (
	"slices"
	"time"

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
		Offer: t.subject(), Until: t.until(body.ValidUntil), Sequence: t.Next,
	}, body.MaxDepth, t.counters)
	if err != nil {
		return t.exceeded(err)
	}
	t.granted = &grant
	return nil
}

// mayTake refuses a target that cannot act for the sender: who has a part of its
// own here, who accepted a delegation, or whom the same side asks already.
func (t *Command) mayTake(target performatives.Agent) error {
	if p, ok := t.parties.Get(target); ok {
		if p.Role != Delegate {
			return Refuse(Unauthorized, "%s has a part of its own in this session and cannot act for another", target)
		}
		for _, g := range t.standing(p, t.Now) {
			if g.Status == delegation.Active || g.Principal == t.Side || t.Before(2) {
				return Refuse(Duplicate, "%s holds a delegation in this session already; WITHDRAW it first", target).
					With(map[string]any{"delegationId": g.ID})
			}
		}
	}
	m, registered := t.event.Known.Get(target)
	if !registered {
		return unknownAgent(target)
	}
	if target == t.arbiter.Agent {
		return Refuse(Unauthorized, "%s decides the disputes of this session, and acts for no side of it", target)
	}
	if t.arbiter.Agent != "" && target.Organisation() == t.arbiter.Agent.Organisation() && !t.event.Replayed {
		return Refuse(Unauthorized, "%s is of the organisation of %s, which decides the disputes of this session", target, t.arbiter.Agent)
	}
	if org := target.Organisation(); org != t.Side.Organisation() && escalation.MayDecide(m, org) && t.partyTo(org) && !t.Before(2) {
		return Refuse(Unauthorized, "%s may decide for %s, which is another party here: delegate to somebody who does not", target, org).
			With(map[string]any{"targetAgent": target, "organisation": org})
	}
	return nil
}

// partyTo reports whether a principal of the session is of an organisation.
func (t *Command) partyTo(org performatives.Organisation) bool {
	return slices.ContainsFunc(t.order, func(a performatives.Agent) bool {
		p, _ := t.parties.Get(a)
		return p.Role <= Invitee && a.Organisation() == org
	})
}

func delegated(t *Command) {
	g := *t.granted
	t.grants = t.grants.With(g.ID, g)
	t.grantOrder = append(slices.Clip(t.grantOrder), g.ID)
	was, _ := t.parties.Get(g.To)
	p := Party{Role: Delegate}
	p.Member, _ = t.event.Known.Get(g.To)
	p.Authority = g.Authority.String()
	t.enter(p.with(append(t.standing(was, t.Now), g)))
}

// standing are the delegations that somebody accepted or may accept, the accepted one
// first.
func (s *State) standing(p Party, now time.Time) []delegation.Grant {
	var all []delegation.Grant
	for _, id := range append([]delegation.ID{p.Grant}, p.Waiting...) {
		if g, ok := s.grants.Get(id); ok && g.Status <= delegation.Active && delegation.Standing(g, now, s.grants.Get) == nil {
			all = append(all, g)
		}
	}
	return all
}

// with is the party with these delegations, if there are any.
func (p Party) with(grants []delegation.Grant) Party {
	if len(grants) > 0 {
		p.Grant, p.Waiting = grants[0].ID, ids(grants[1:])
	}
	return p
}

func ids(grants []delegation.Grant) []delegation.ID {
	var all []delegation.ID
	for _, g := range grants {
		all = append(all, g.ID)
	}
	return all
}

// grantOf is the delegation that somebody accepted, else the first that it may
// accept, else the last that it had.
func (s *State) grantOf(p Party, now time.Time) delegation.Grant {
	if all := s.standing(p, now); len(all) > 0 {
		return all[0]
	}
	g, _ := s.grants.Get(p.Grant)
	return g
}

// actsUnder is the delegation that an act rests on: the one that it answers, the one
// that the sender accepted, or the only one that it may accept; nil if there are more.
func (t *Command) actsUnder(p Party) *delegation.Grant {
	all := t.standing(p, t.Now)
	if answersDelegation(t.Act) {
		for _, g := range all {
			if string(g.ID) == t.Message.Body.Refers() {
				return &g
			}
		}
	}
	if len(all) > 1 && all[0].Status == delegation.Offered {
		return nil
	}
	g := t.grantOf(p, t.Now)
	return &g
}

// ambiguous refuses an act of somebody to whom several sides delegated and who
// accepted none.
func (t *Command) ambiguous() error {
	offered := ids(t.standing(t.From, t.Now))
	return Refuse(AuthorityExceeded, "%d delegations are offered to you: ACCEPT the one that you act under", len(offered)).
		With(map[string]any{"rule": "ambiguous", "delegations": offered})
}

// joins reports whether the act accepts the delegation that it rests on.
func (t *Command) joins() bool {
	switch {
	case t.Grant == nil || t.Grant.Status != delegation.Offered:
		return false
	case t.about == nil:
		return true
	case t.about.ID == t.Grant.ID:
		return t.Act == performatives.Accept
	}
	return t.Before(2)
}

// join accepts it; what else is offered may be accepted once this one is over.
func (t *Command) join() {
	t.Grant.Status, t.Grant.Accepted = delegation.Active, t.Next
	t.unawait(string(t.Grant.ID))
	t.grants = t.grants.With(t.Grant.ID, *t.Grant)
	p, _ := t.parties.Get(t.Grant.To)
	others := slices.DeleteFunc(t.standing(p, t.Now), func(g delegation.Grant) bool { return g.ID == t.Grant.ID })
	t.parties = t.parties.With(p.Agent, p.with(append([]delegation.Grant{*t.Grant}, others...)))
}

// answersGrant judges ACCEPT and REJECT of a delegation: its target's to give, once.
func (t *Command) answersGrant() error {
	switch {
	case t.about.From == t.From.Agent:
		return Refuse(OwnProposal, "it is your own delegation; its target answers it, and WITHDRAW takes it back")
	case t.about.To != t.From.Agent:
		return Refuse(Unauthorized, "the delegation is offered to %s, who answers it", t.about.To)
	}
	status := t.about.Status
	if !t.Before(2) {
		status = delegation.StatusAt(*t.about, t.Now, t.grants.Get)
	}
	if status != delegation.Offered {
		return Refuse(ProposalNotOpen, "the delegation is %s", status).With(map[string]any{"referenceId": t.about.ID, "status": status.String()})
	}
	if held := t.grantOf(t.From, t.Now); t.Act == performatives.Accept && held.Status == delegation.Active && !t.Before(2) {
		return Refuse(Duplicate, "you act under another delegation in this session; WITHDRAW it first").
			With(map[string]any{"delegationId": held.ID})
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

func (t *Command) setGrant(status delegation.Status) {
	g := *t.about
	if g.Status = status; status == delegation.Active {
		g.Accepted = t.Next
	}
	t.grants = t.grants.With(g.ID, g)
	t.unawait(string(g.ID))
	if p, ok := t.parties.Get(g.To); ok && len(p.Waiting) > 0 {
		t.parties = t.parties.With(p.Agent, p.with(t.standing(p, t.Now)))
	}
}
