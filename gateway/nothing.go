package gateway

import (
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Offered are the kinds of what is open that ACCEPT, REJECT and COUNTER answer.
var Offered = []string{"invitation", "offer", "commitment"}

// NothingWaits is of an answer that names nothing, where nothing waits for it: it refuses it, or finds what it
// is to name so that the broker refuses it for the right reason, such as that the session is over.
func NothingWaits(p performatives.Performative, now *api.Snapshot) (reference string, err error) {
	for _, o := range slices.Backward(now.Open) {
		if own := o.By == now.You.Agent || o.By == now.You.OnBehalfOf; own && slices.Contains(Offered, o.Kind) {
			return o.ID, nil
		}
	}
	if now.State != session.Idle && !now.State.Allows(p) {
		return uuid.NewString(), nil // which nothing has; the state is judged first
	}
	allowed, more := []string{}, ""
	for _, m := range now.Moves {
		if !slices.Contains(allowed, m.Performative) {
			allowed = append(allowed, m.Performative)
		}
	}
	if len(allowed) > 0 {
		more = ". Allowed for you: " + strings.Join(allowed, ", ") + "."
	}
	return "", session.Refuse(session.ProposalUnknown, "nothing waits for your %s%s", p, more).With(map[string]any{"allowed": allowed})
}

// Answers reports whether an act answers what its referenceId names.
func Answers(p performatives.Performative) bool {
	return p == performatives.Accept || p == performatives.Reject || p == performatives.Counter || p == performatives.Clarify
}
