package session

import (
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Withdraw, deed{refers: withdraws, happens: withdrawn})

func withdraws(t *Command) error {
	body := t.Message.Body.(*performatives.WithdrawBody) //nolint:errcheck,forcetypeassert // its act says so
	switch {
	case t.about != nil:
		return t.withdrawsGrant()
	case t.question != nil:
		if t.question.By != t.Side {
			return notYours(body.ReferenceID)
		}
		if len(t.question.Open) == 0 {
			return Refuse(ProposalNotOpen, "the clarification is answered already")
		}
		return nil
	case t.Offer == nil:
		return unknownReference(body.ReferenceID, "proposal, commitment, delegation or clarification")
	case t.Offer.Side != t.Side:
		return notYours(body.ReferenceID)
	case t.Offer.StatusAt(t.Now) != Open:
		return notOpen(t.Offer, t.Offer.StatusAt(t.Now).String())
	}
	return nil
}

func notYours(id string) error {
	return Refuse(Unauthorized, "%q is not yours to withdraw", id)
}

func withdrawn(t *Command) {
	switch {
	case t.about != nil:
		t.setGrant(delegation.Withdrawn)
	case t.question != nil:
		t.answerQuestion(*t.question, nil)
	default:
		t.SetStatus(t.Offer.ID, WithdrawnOffer)
		if t.Was == Invited {
			t.Closing = WithdrawnOffer.String()
		}
		if effect := t.mode().Effects[performatives.Withdraw]; effect != nil && t.Offer.IsProposal() {
			effect(t)
		}
	}
}
