package session

import (
	"fmt"
	"slices"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// authorised asks what the sender may send: a delegate by its grant, an
// approver by being one; and whether it is trusted enough to answer.
func (t *Command) authorised() error {
	if t.Act == performatives.Inform {
		if ruling, ok := t.ruling(); ok {
			return t.mayRule(ruling)
		}
	}
	if t.Phase == Escalated { // a human's CLOSE: nothing else is allowed
		return t.mayDecide(t.EscalationFor(t.Message))
	}
	switch t.From.Role {
	case Inviter, Invitee:
	case Delegate:
		if err := t.withinGrant(); err != nil {
			return err
		}
	case Standby:
		if err := t.standsIn(); err != nil {
			return err
		}
	case Arbiter:
		if !approverActs[t.Act] {
			return Refuse(AuthorityExceeded, "you are here to decide disputes; besides a resolution you may send INFORM, QUERY and OBSERVE")
		}
	case Approver:
		if t.Phase != Escalated && !approverActs[t.Act] && t.Side == t.From.Agent {
			return Refuse(AuthorityExceeded, "you are here to decide escalations; besides a resolution you may send INFORM, QUERY and OBSERVE")
		}
	}
	if err := t.mayExecute(); err != nil {
		return err
	}
	if err := t.withinCard(); err != nil {
		return err
	}
	if err := t.withinRuling(); err != nil {
		return err
	}
	return t.trusted()
}

var approverActs = map[performatives.Performative]bool{
	performatives.Inform: true, performatives.Query: true, performatives.Observe: true,
}

// mayRule insists on a human of the escalating organisation who may decide.
func (t *Command) mayRule(ruling performatives.RulingData) error {
	item, known := t.items.Get(escalation.ID(ruling.EscalationID))
	if !t.From.Agent.IsHuman() {
		return Refuse(Unauthorized, "only a human resolves an escalation, never an agent")
	}
	if known && item.Dispute != "" {
		return RefuseSchema(Fault{Path: "/data/escalationId", Rule: "dispute", Message: fmt.Sprintf("it asks about the dispute %q: answer that by INFORM reply, with the position concede, deny or offer", item.Dispute)})
	}
	if known && !escalation.MayDecide(t.From.Member, item.Org) || !known && t.From.Authority != performatives.AuthorityDecide {
		return Refuse(Unauthorized, "only a human of the escalating organisation who may decide resolves it")
	}
	if !known || !item.Open() {
		return nil
	}
	if err := t.opened(ruling.Sealed); err != nil {
		return err
	}
	if err := t.mayDecide(item); err != nil {
		return err
	}
	for _, check := range []func(*escalation.Item, performatives.RulingData) error{t.mayDeny, t.mayApprove, t.mayConfirm} {
		if err := check(item, ruling); err != nil {
			return err
		}
	}
	return nil
}

// withinGrant holds a delegate to its delegation. Answering the delegation
// itself, and taking back one that it made, are always its own to do.
func (t *Command) withinGrant() error {
	if t.Grant == nil {
		return t.ambiguous()
	}
	if err := delegation.Standing(*t.Grant, t.Now, t.grants.Get); err != nil {
		return t.exceeded(err)
	}
	if t.about != nil && (t.about.ID == t.Grant.ID || t.Act == performatives.Withdraw) {
		return nil
	}
	if err := t.Grant.Can(t.Act, t.subject(), t.counters); err != nil && !t.mayAsk() {
		return t.exceeded(err)
	}
	if body, ok := t.Message.Body.(*performatives.DelegateBody); ok {
		return t.narrows(body)
	}
	return nil
}

// withinCard holds the sender, and the side that it acts for, to the most that their cards let
// them agree to, unless a human has said how much it may be. What names no amount is not above it.
func (t *Command) withinCard() error {
	agrees := acts[t.Act].agrees
	if agrees == nil || t.about != nil || t.Phase < Introduced || t.Before(3) || t.draft != nil && t.draft.free {
		return nil
	}
	ruled, _ := t.bounds.Get(t.Side)
	for _, a := range slices.Compact([]performatives.Agent{t.From.Agent, t.Side}) {
		p, _ := t.parties.Get(a)
		if p.MaxValue == nil {
			continue
		}
		most := &escalation.Bound{RulingsAuthority: performatives.RulingsAuthority{MaxAmount: p.MaxValue, Currency: p.Currency}, Strict: true}
		pledge, _ := t.pledge(most)
		more := most.Exceeded(pledge)
		if more == nil || more.Amount == nil && more.Path == "" || t.trusts(ruled.For(pledge)) || ruled.For(pledge).SaysHowMuch(t.At) {
			continue
		}
		says := map[string]any{"agentId": a, "maxTransactionValue": p.MaxValue, "currency": p.Currency}
		if more.Amount != nil {
			says["amount"] = more.Amount
		}
		return Refuse(AuthorityExceeded, "the card of %s allows %s, and of this %s %s; or ESCALATE for more", a, most, t.Act, more.Why).With(says)
	}
	return nil
}

func (t *Command) exceeded(err error) error {
	return Refuse(AuthorityExceeded, "%s", err).
		With(map[string]any{"delegationId": t.Grant.ID, "authority": t.Grant.Authority.String(), "allows": actNames(t.Grant.Authority.Acts())})
}

// mayAsk reports whether the act is an ESCALATE of a limited delegate, which formats before 3 allow.
func (t *Command) mayAsk() bool {
	return t.Act == performatives.Escalate && t.Grant.Authority == delegation.Limited && t.Before(3)
}

// subject is the offer that the act is about; before format 3, the first one of its line of counters.
func (t *Command) subject() string {
	o := t.Offer
	if o == nil && t.question != nil {
		o, _ = t.State.Offer(t.question.Offer)
	}
	switch {
	case o == nil:
		return ""
	case t.Before(3):
		return o.Line
	}
	return o.ID
}

// counters reports whether an offer is another one, or counters it, directly or not.
func (s *State) counters(id, other string) bool {
	for id != other {
		o, ok := s.Offer(id)
		if !ok || !o.IsProposal() || o.Supersedes == "" {
			return false
		}
		id = o.Supersedes
	}
	return true
}
