package session

import (
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Reject, deed{refers: rejects, happens: rejected, answers: answersReference})

func rejects(t *Command) error {
	body := t.Message.Body.(*performatives.RejectBody) //nolint:errcheck,forcetypeassert // its act says so
	if t.about != nil {
		return t.answersGrant()
	}
	return t.answers(body.ReferenceID)
}

func rejected(t *Command) {
	body := t.Message.Body.(*performatives.RejectBody) //nolint:errcheck,forcetypeassert // its act says so
	switch effect := t.Mode.Effects[performatives.Reject]; {
	case t.about != nil:
		t.setGrant(delegation.Declined)
	case t.Offer.IsProposal() && effect != nil:
		effect(t)
	default:
		t.SetStatus(t.Offer.ID, Rejected)
		if t.Phase == Invited {
			t.Closing = body.Code
		}
	}
}
