package session

import (
	"math/big"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// The rules of an organisation may ask people before what was delivered counts as accepted: an ACCEPT
// then pauses the session, as one does that people confirm (COMMITMENTS.md C2, PROTOCOL.md §7).

// DeliveryTo is the obligation of which a message accepts what was delivered.
func (s *State) DeliveryTo(m *performatives.Message) (*Obligation, bool) {
	if m.Performative != performatives.Accept || !s.executing {
		return nil, false
	}
	return s.Delivered(m.Body.Refers())
}

// Delivered is the obligation of a delivery that waits for an answer.
func (s *State) Delivered(id string) (*Obligation, bool) {
	key, waits := s.toAnswer.Get(id)
	if !waits {
		return nil, false
	}
	return s.obligations.Get(key)
}

// AcceptanceBody is the question whether to accept a delivery, as an ESCALATE would ask it.
func (o *Obligation) AcceptanceBody() *performatives.EscalateBody {
	d := o.Delivery
	said := struct {
		Commitment string                   `json:"commitmentId"`
		Promised   performatives.Obligation `json:"promised"`
		Delivered  struct {
			Quantity *float64                 `json:"quantity,omitzero"`
			Late     bool                     `json:"late,omitzero"`
			Evidence []performatives.Evidence `json:"evidence,omitzero"`
		} `json:"delivered"`
		Accepts *float64 `json:"accepts,omitzero"`
	}{Commitment: o.Commitment, Promised: o.Obligation}
	said.Delivered.Late, said.Delivered.Evidence = d.Late, d.Evidence
	if o.Remains != nil {
		quantity := nearest(d.delivers(o))
		said.Delivered.Quantity = &quantity
	}
	if d.accepting != nil && d.accepting.quantity != nil {
		quantity := nearest(d.accepting.quantity)
		said.Accepts = &quantity
	}
	said.Promised.ID = o.ID
	context, _ := json.Marshal(said, json.Deterministic(true)) // it was read from JSON
	return &performatives.EscalateBody{
		Reason: performatives.Delivered, Urgency: string(escalation.Low), Context: context, ReferenceID: d.ID,
	}
}

// Worth is the amount that an obligation names; nil for none.
func (o *Obligation) Worth() *escalation.Amount {
	if o.Amount == nil {
		return nil
	}
	return &escalation.Amount{Value: o.Amount.Value, Currency: o.Amount.Currency, Path: "amount"}
}

// An acceptance is an ACCEPT of a delivery that waits for people.
type acceptance struct{ quantity *big.Rat }

// asksToAccept reports whether people have to approve the ACCEPT of a delivery, and asks them.
func (t *Command) asksToAccept(quantity *big.Rat) bool {
	route := t.event.Confirm[t.Side.Organisation()]
	if route == nil {
		return false
	}
	o, d := *t.obligation, *t.obligation.Delivery
	d.accepting, o.Delivery = &acceptance{quantity}, &d
	t.setObligation(o)
	item := t.newItem(escalation.ID(t.Message.ID), t.From.Agent, t.Side, o.AcceptanceBody(), nil, route)
	item.Amount, t.size = o.Worth(), t.size+len(item.Body.Context)
	t.pause(item)
	t.phase = Escalated
	return true
}

// acceptanceRuled carries out what people have decided of a delivery: they accept it, or it is due again.
func (t *Command) acceptanceRuled(item *escalation.Item, decision string) {
	o, waits := t.Delivered(item.Body.ReferenceID)
	switch {
	case !waits:
	case escalation.Approves(decision):
		t.take(*o, o.Delivery.accepting.quantity, ObligationFulfilled)
	default:
		t.dueAgain(*o)
	}
}
