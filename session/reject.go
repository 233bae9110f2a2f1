package session

import (
	"fmt"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Reject, deed{refers: rejects, happens: rejected, answers: answersReference})

// deliveryCodes are those of what was delivered, besides unspecified.
var deliveryCodes = map[string]bool{"late": true, "incomplete": true, "mismatch": true, "evidence_missing": true}

const unspecified = "unspecified"

func rejects(t *Command) error {
	body := t.Message.Body.(*performatives.RejectBody) //nolint:errcheck,forcetypeassert // its act says so
	if t.about != nil {
		return t.answersGrant()
	}
	ofDelivery := t.delivery != nil && t.executing
	if body.Code != unspecified && deliveryCodes[body.Code] != ofDelivery {
		return RefuseSchema(Fault{Path: "/code", Rule: "enum", Message: fmt.Sprintf("%s is no code to reject what referenceId names", body.Code)})
	}
	if ofDelivery {
		return t.answersDelivery(nil)
	}
	return t.answers(body.ReferenceID)
}

func rejected(t *Command) {
	body := t.Message.Body.(*performatives.RejectBody) //nolint:errcheck,forcetypeassert // its act says so
	switch effect := t.Mode.Effects[performatives.Reject]; {
	case t.about != nil:
		t.setGrant(delegation.Declined)
	case t.obligation != nil:
		t.dueAgain(*t.obligation)
	case t.Offer.IsProposal() && effect != nil:
		effect(t)
	default:
		t.SetStatus(t.Offer.ID, Rejected)
		if t.Phase == Invited {
			t.Closing = body.Code
		}
	}
}
