package session

import (
	"fmt"

	"github.com/parley-asp/parley/performatives"
)

// amends judges a PROPOSE of other obligations in place of those that are still due.
func (t *Command) amends(o *Offer, reference string) error {
	t.offering = o
	o.Kind, o.Supersedes = anAmendment, reference
	if err := t.alive(o.Expires); err != nil {
		return err
	}
	c, ok := t.Commitment(reference)
	if !ok {
		return unknownReference(reference, "commitment")
	}
	if err := t.ofCommitment(c); err != nil {
		return err
	}
	if err := t.newID(o.ID); err != nil {
		return err
	}
	amended, err := obligationsIn(o.Terms)
	if err != nil {
		return err
	}
	if err := ofParties(amended, c.Parties); err != nil {
		return err
	}
	if err := t.amendable(reference, amended); err != nil {
		return err
	}
	return t.keepsParties(reference, amended)
}

// keepsParties refuses to have another party owe what one owes already, whose breaches and deliveries would go along.
func (t *Command) keepsParties(commitment string, amended []performatives.Obligation) error {
	for i, a := range amended {
		if o, has := t.Obligation(commitment, a.ID); has && a.Party != o.Party && !t.event.Replayed {
			return RefuseSchema(Fault{
				Path: fmt.Sprintf("/terms/obligations/%d/party", i), Rule: "party",
				Message: fmt.Sprintf("%s owes the obligation %s, and its record: waive it, and give the new one an id of its own", o.Party, a.ID),
			})
		}
	}
	return nil
}

// amendable refuses to replace what is not due any more, and more obligations than a session has.
func (t *Command) amendable(commitment string, amended []performatives.Obligation) error {
	more := 0
	for _, a := range amended {
		o, has := t.Obligation(commitment, a.ID)
		if !has {
			more++
		} else if err := stillDue(o); err != nil {
			return err
		}
	}
	if total := len(t.obliged) + more; total > MostObligations {
		return RefuseSchema(tooManyObligations(total))
	}
	return nil
}

// answersAmendment judges an ACCEPT, REJECT or CLARIFY of an amendment.
func (t *Command) answersAmendment() error {
	c, _ := t.Commitment(t.Offer.Supersedes)
	if err := t.ofCommitment(c); err != nil || t.Act != performatives.Accept {
		return err
	}
	amended, _ := obligationsIn(t.Offer.Terms)
	return t.amendable(c.ID, amended)
}

// amended puts the obligations of an amendment that every party has accepted in force. Who wanted to
// leave did not know of them.
func (t *Command) amended(o *Offer) {
	all, _ := obligationsIn(o.Terms)
	for _, a := range all {
		before, _ := t.Obligation(o.Supersedes, a.ID)
		t.oblige(o.Supersedes, a, before)
		t.concerns(keyOf(o.Supersedes, a.ID))
	}
	t.leaving = nil
}
