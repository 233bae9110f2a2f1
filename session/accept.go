package session

import (
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Accept, deed{refers: accepts, happens: accepted, answers: answersReference, agrees: agreesToOffer})

func accepts(t *Command) error {
	body := t.Message.Body.(*performatives.AcceptBody) //nolint:errcheck,forcetypeassert // its act says so
	switch {
	case t.about != nil:
		return t.answersGrant()
	case t.delivery != nil && t.executing:
		return t.answersDelivery(body.Quantity)
	case body.Quantity != nil && !t.Before(7):
		return RefuseSchema(Fault{Path: "/quantity", Rule: "quantity", Message: "quantity is of what was delivered, and referenceId names no delivery"})
	case t.remedy != "" && t.executing:
		return t.answersRemedy()
	}
	if err := t.answers(body.ReferenceID); err != nil || t.Phase != Invited {
		return err
	}
	return t.unfit()
}

// agreesToOffer limits an ACCEPT by the offer that it names; that it names none
// is judged later.
func agreesToOffer(t *Command, _ *escalation.Bound) (escalation.Pledge, bool) {
	if t.Offer == nil {
		return escalation.Pledge{}, false
	}
	return t.pledgeOf(t.Offer), true
}

func accepted(t *Command) {
	switch {
	case t.about != nil:
		t.setGrant(delegation.Active)
	case t.obligation != nil:
		t.takes()
	case t.ofDispute != nil:
		t.endDispute(*t.ofDispute, performatives.Agreed)
	case t.Offer.Kind == aProposal:
		t.acceptsItself(t.Side)
		if effect := t.Mode.Effects[performatives.Accept]; effect != nil {
			effect(t)
			return
		}
		t.SetStatus(t.Offer.ID, Accepted)
		switch {
		case !t.AcceptanceBinds() || t.Offer.Side == t.Side: // whose own offer it is agrees with nobody
		case t.Confirms(), t.Mode.Commits && !t.Before(4):
			t.agreeTerms()
		default:
			t.Agree(t.Offer.ID, t.Side)
		}
	default:
		t.acceptFor(t.Side)
	}
}

// acceptFor notes that one principal has accepted an invitation or a
// commitment, which need the word of every one that they are addressed to.
func (t *Command) acceptFor(side performatives.Agent) {
	t.change(t.Offer.ID, func(o *Offer) {
		o.acceptedBy = o.acceptedBy.With(side, true)
		if o.acceptedBy.Len() >= t.answersNeeded(o) {
			o.Status = Accepted
		}
	})
	if t.Phase != Invited {
		switch o, _ := t.State.Offer(t.Offer.ID); {
		case o.Status != Accepted:
		case o.Kind == anAmendment:
			t.amended(o)
		case t.Mode.Commits && !t.Before(4):
			t.bindCommitment(o)
		}
		return
	}
	t.answered(side)
	if body := t.Message.Body.(*performatives.AcceptBody); body.InAdvance { //nolint:errcheck,forcetypeassert // its act says so
		p, _ := t.parties.Get(side)
		p.unasked = true
		t.parties = t.parties.With(side, p)
	}
	if everyInviteeAccepted(&t.State) && !t.Before(3) { // the duration counts from now on
		t.duration = t.duration.Add(t.Now.Sub(t.Created))
	}
}

// answered notes that an invited principal is in: it accepted, or it made an
// invitation of its own.
func (t *Command) answered(side performatives.Agent) {
	p, _ := t.parties.Get(side)
	p.Answered = true
	t.parties = t.parties.With(side, p)
}

// acceptsItself notes that a principal whose invitation was accepted in advance has accepted
// something itself, and so what the invitation asks for.
func (t *Command) acceptsItself(side performatives.Agent) {
	if p, _ := t.parties.Get(side); p.unasked {
		p.unasked = false
		t.parties = t.parties.With(side, p)
	}
}

func (t *Command) answersNeeded(o *Offer) int {
	if o.Kind == anAmendment {
		c, _ := t.Commitment(o.Supersedes)
		return len(c.Parties) - 1
	}
	if o.To != "" {
		return 1
	}
	return t.principals - 1
}
