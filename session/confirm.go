package session

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// What was agreed may wait for people: a mode that Confirms asks a human of each
// organisation, all at once, before the agreement counts (PROTOCOL.md §8).

// A Confirmation is what one side asks its own people to confirm.
type Confirmation struct {
	ID      performatives.MessageID // of the act by which the side agreed
	By      performatives.Agent     // who sent it
	Side    performatives.Agent
	Context jsontext.Value // the side's own words
}

// Confirms reports whether the ACCEPT of a proposal has to be confirmed.
func (s *State) Confirms() bool {
	return s.Mode != nil && s.Mode.Confirms != nil && s.Mode.Confirms(s)
}

// ToConfirm is the offer that a message agrees to, if people have to confirm that.
func (s *State) ToConfirm(m *performatives.Message) (*Offer, bool) {
	if m.Performative != performatives.Accept || !s.Confirms() {
		return nil, false
	}
	o, ok := s.Offer(m.Body.Refers())
	return o, ok && o.IsProposal()
}

// ConfirmationBody is the question as an ESCALATE would ask it.
func ConfirmationBody(offer string, context jsontext.Value) *performatives.EscalateBody {
	return &performatives.EscalateBody{
		Reason: performatives.Confirmation, Urgency: string(escalation.Low), Context: context, ReferenceID: offer,
	}
}

// Confirm pauses the session until a human of each organisation has confirmed the offer.
// An organisation is asked once, also if it is on both sides.
func (t *Command) Confirm(offer *Offer, asked ...Confirmation) {
	at := map[performatives.Organisation]int{}
	var items []*escalation.Item
	for _, c := range asked {
		org := c.Side.Organisation()
		item := t.newItem(escalation.ID(c.ID), c.By, c.Side, ConfirmationBody(offer.ID, c.Context), offer, t.event.Confirm[org])
		if i, twice := at[org]; twice {
			items[i] = item
			continue
		}
		at[org] = len(items)
		items = append(items, item)
	}
	t.pause(items...)
	t.phase = Escalated
}

// Confirmed reports how people decided on what they were asked to confirm: all approved,
// or one did not. While somebody has yet to decide, over is false.
func (s *State) Confirmed() (confirmed, over bool) {
	confirmed = true
	for _, item := range s.asked {
		if item.Open() {
			return false, false
		}
		confirmed = confirmed && escalation.Approves(item.End.How)
	}
	return confirmed, true
}

// mayConfirm refuses what is neither a yes nor a no, and a yes to less than was agreed.
func (t *Command) mayConfirm(item *escalation.Item, ruling performatives.RulingData) error {
	if !item.Confirms() {
		return nil
	}
	switch ruling.Decision {
	case performatives.Denied:
		return nil
	case performatives.Approved:
	default:
		why := "the agents have agreed, and this confirms it or does not"
		if item.OfDelivery() {
			why = "a delivery is accepted, or it is due again"
		}
		return RefuseSchema(Fault{Path: "/data/decision", Rule: "enum", Message: "data.decision must be approved or denied: " + why})
	}
	if item.OfDelivery() && ruling.Authority != nil {
		return RefuseSchema(Fault{Path: "/data/authority", Rule: "delivery", Message: "a delivery is accepted as it is: approve it without an authority, or deny it"})
	}
	if ruling.Sealed.Has(performatives.SealAuthority) {
		return nil // the broker, which had it, has judged it
	}
	granted, _ := item.Granted(ruling.Authority, t.From.Limited)
	offer, known := t.State.Offer(item.Offer)
	if granted == nil || !known {
		return nil
	}
	bound := escalation.Bound{RulingsAuthority: *granted, Strict: !t.Before(3)}
	if item.Route != nil {
		bound.Amounts = item.Route.Amounts
	}
	if bound.Empty() {
		return nil
	}
	if more := bound.Exceeded(t.pledgeOf(offer)); more != nil {
		return Refuse(AuthorityExceeded, "you approve %s, and of what was agreed %s: approve it as it is, or deny it", &bound, more.Why).
			With(map[string]any{"escalationId": item.ID, "authority": granted})
	}
	return nil
}
