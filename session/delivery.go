package session

import (
	"fmt"
	"math/big"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// stillDue refuses what needs an obligation that is due.
func stillDue(o *Obligation) error {
	if o.StillDue() {
		return nil
	}
	how := o.Ended
	if how == "" {
		how = ObligationAsserted
	}
	return Refuse(ProposalNotOpen, "%s is not due any more: it is %s", o.name(), how).
		With(map[string]string{"commitmentId": o.Commitment, "obligation": o.ID, "status": how})
}

// delivers judges a result. One of an obligation whose delivery waits for an answer takes its place.
func (t *Command) delivers(d performatives.ResultData) error {
	o, err := t.obligationAbout(d.CommitmentID, d.Obligation)
	if err != nil {
		return err
	}
	if err := t.obliges(o, performatives.Result); err != nil {
		return err
	}
	if o.Ended != "" {
		return stillDue(o)
	}
	var faults []Fault
	switch {
	case d.Quantity != nil && o.Remains == nil:
		faults = append(faults, Fault{Path: "/data/quantity", Rule: "quantity", Message: o.name() + " has no quantity"})
	case d.Quantity != nil && exactly(*d.Quantity).Cmp(o.Remains) > 0:
		faults = append(faults, Fault{Path: "/data/quantity", Rule: "maximum", Message: fmt.Sprintf("%v is more than is due of %s: %v", *d.Quantity, o.name(), nearest(o.Remains))})
	}
	if d.Unit != "" && d.Unit != o.Unit {
		faults = append(faults, Fault{Path: "/data/unit", Rule: "unit", Message: fmt.Sprintf("the unit of %s is %q", o.name(), o.Unit)})
	}
	if faults != nil {
		return RefuseSchema(faults...)
	}
	t.obligation = o
	return nil
}

func (t *Command) waives(w performatives.WaiverData) error {
	o, err := t.obligationAbout(w.CommitmentID, w.Obligation)
	if err != nil {
		return err
	}
	if o.Party == t.Side {
		return Refuse(Unauthorized, "%s is yours: the other side waives it", o.name())
	}
	if o.Ended != "" {
		return stillDue(o)
	}
	t.obligation = o
	return nil
}

func (t *Command) delivered(d performatives.ResultData) {
	o := *t.obligation
	window := AcceptanceWindow
	if ms := o.AcceptanceWindowMs; ms > 0 {
		window = time.Duration(ms) * time.Millisecond
	}
	o.Delivery = &Delivery{
		ID: string(t.Message.ID), Obligation: o.key(), By: t.From.Agent, Evidence: d.Evidence, Sequence: t.Next, Late: o.Breached,
		Until: t.Now.Add(window),
	}
	if d.Quantity != nil {
		o.Delivery.Quantity = exactly(*d.Quantity)
	}
	t.deliveries = t.deliveries.With(o.Delivery.ID, o.Delivery)
	t.setObligation(o)
	t.concerns(o.key())
	t.size += len(t.Message.RawBody)
}

// concerns notes that the entry is about an obligation, for a dispute about it.
func (t *Command) concerns(obligation string) {
	t.aboutObligation = t.aboutObligation.With(sequenceKey(t.Next), obligation)
}

// answersDelivery judges an ACCEPT or REJECT of what was delivered.
func (t *Command) answersDelivery(quantity *float64) error {
	o, _ := t.obligations.Get(t.delivery.Obligation)
	c, _ := t.Commitment(o.Commitment)
	if o.Party == t.Side {
		return Refuse(OwnProposal, "it is your own delivery; the other side answers it")
	}
	if err := t.ofCommitment(c); err != nil {
		return err
	}
	if o.Delivery == nil || o.Delivery.ID != t.delivery.ID {
		status := "superseded"
		if o.Delivery == nil {
			status = o.Status()
		}
		return Refuse(ProposalNotOpen, "the delivery waits for no answer: %s is %s", o.name(), status).
			With(map[string]string{"referenceId": t.delivery.ID, "status": status})
	}
	if quantity != nil {
		if o.Remains == nil {
			return RefuseSchema(Fault{Path: "/quantity", Rule: "quantity", Message: o.name() + " has no quantity"})
		}
		if most := o.Delivery.delivers(o); exactly(*quantity).Cmp(most) > 0 {
			return RefuseSchema(Fault{Path: "/quantity", Rule: "maximum", Message: fmt.Sprintf("%v is more than was delivered: %v", *quantity, nearest(most))})
		}
	}
	t.obligation = o
	return nil
}

// delivers is the quantity that a delivery is of.
func (d *Delivery) delivers(o *Obligation) *big.Rat {
	if d.Quantity != nil {
		return d.Quantity
	}
	return o.Remains
}

// takes carries out an ACCEPT of what was delivered.
func (t *Command) takes() {
	var quantity *big.Rat
	if body := t.Message.Body.(*performatives.AcceptBody); body.Quantity != nil { //nolint:errcheck,forcetypeassert // its act says so
		quantity = exactly(*body.Quantity)
	}
	if t.asksToAccept(quantity) {
		return
	}
	t.take(*t.obligation, quantity, ObligationFulfilled)
}

// take accepts what was delivered of an obligation: a quantity of it, or all; how is what it is once
// nothing is due any more.
func (t *Command) take(o Obligation, quantity *big.Rat, how string) {
	d := o.Delivery
	o.Delivery, o.Since = nil, t.Next
	if o.Remains != nil {
		if quantity == nil {
			quantity = d.delivers(&o)
		}
		o.Remains = new(big.Rat).Sub(o.Remains, quantity)
		sum := quantity
		if o.Accepted != nil {
			sum = new(big.Rat).Add(o.Accepted, quantity)
		}
		o.Accepted = sum
	}
	if o.Remains == nil || o.Remains.Sign() == 0 {
		if o.Ended = how; d.Late && how == ObligationFulfilled {
			o.Ended = ObligationLate
		}
	}
	t.setObligation(o)
	t.concerns(o.key())
}

// dueAgain makes an obligation due whose delivery was turned down.
func (t *Command) dueAgain(o Obligation) {
	o.Delivery, o.Since = nil, t.Next
	t.setObligation(o)
	t.concerns(o.key())
}
