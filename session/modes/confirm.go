package modes

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// What happens between the agents' agreement and the people's: policy.confirm.

// agreed ends the session, or asks a human of each organisation first. A side's item has
// the id of the act by which the side agreed.
func (b *bilateral) agreed(t *session.Command, side int) {
	if !b.confirm {
		t.Carry(session.Closed, statusPending)
		return
	}
	t.Confirm(t.Offer,
		session.Confirmation{ID: b.offered, By: t.Offer.By, Side: t.Offer.Side, Context: b.said[1-side].context()},
		session.Confirmation{ID: t.Message.ID, By: t.From.Agent, Side: t.Side, Context: b.said[side].context()})
}

// confirmed ends the session once everybody has confirmed, or somebody has not.
func (b *bilateral) confirmed(t *session.Command) {
	confirmed, over := t.Confirmed()
	switch {
	case !over:
	case confirmed:
		b.finish(statusConfirmed, "")
		t.BindConfirmed()
		t.Carry(session.Closed, statusConfirmed)
	default:
		b.finish(statusDeclined, statusDeclined)
		t.Carry(session.Closed, statusDeclined)
	}
}

// context is what a side's own people read of what it said.
func (a assessment) context() jsontext.Value {
	data, err := json.Marshal(struct {
		Reasoning string `json:"reasoning"`
		Role      string `json:"ownUser"`
	}{a.reasoning, a.ownUser})
	if err != nil {
		return jsontext.Value(`{}`) // no text that JSON cannot write gets here
	}
	return data
}

// A confirmation is where an organisation's decision stands.
type confirmation struct {
	Organisation asp.Organisation `json:"organisation"`
	ID           escalation.ID    `json:"escalationId"`
	Status       string           `json:"status"` // open, approved, denied, closed or expired
	By           asp.Agent        `json:"decidedBy,omitzero"`
}

// confirmations are those of an agreement, of the organisation that made the offer first.
func confirmations(s *session.State) (all []confirmation) {
	for _, item := range s.NewestEscalations() {
		if item.OfDelivery() || !item.Confirms() {
			continue
		}
		c := confirmation{item.Org, item.ID, item.End.How, item.End.By}
		if item.Open() {
			c.Status = "open"
		}
		all = append(all, c)
	}
	return all
}
