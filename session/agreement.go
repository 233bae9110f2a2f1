package session

import (
	"maps"
	"slices"

	"github.com/parley-asp/parley/performatives"
)

// An Agreement is what binds its parties: an accepted offer, or an accepted commitment with
// the proposal that it carries out.
type Agreement struct {
	Name       string                         // the id that it has in the session: its proposal's, else its commitment's
	Proposal   string                         // "" for a commitment that carries none out
	Commitment string                         // "" where no COMMIT made it
	Parties    []performatives.Agent          // who made the offer comes first
	Offer      uint64                         // the entry with the offer: of the proposal, else of the commitment
	Commit     uint64                         // the entry that carries the proposal out; 0 for none
	Acceptance uint64                         // the entry that accepted the commitment, else the offer
	Close      uint64                         // the CLOSE that made it of agreed terms; 0 for none
	Confirmed  uint64                         // the last ruling by which people confirmed it; 0 for none
	Signatures map[performatives.Agent]string // over the hash, made after the acceptance; never changed
	Consented  bool                           // every party has agreed to what policy.publish asks for
}

// Made is the entry by which it came to be.
func (a Agreement) Made() uint64 { return max(a.Acceptance, a.Close, a.Confirmed) }

// Confirmations are the rulings by which people confirmed it: while it waits for them, nothing
// else is accepted.
func (a Agreement) Confirmations() (rulings []uint64) {
	for n := a.Acceptance + 1; n <= a.Confirmed; n++ {
		rulings = append(rulings, n)
	}
	return rulings
}

// AcceptanceBinds reports whether the ACCEPT of a proposal makes an agreement, alone or together
// with what has to follow it.
func (s *State) AcceptanceBinds() bool {
	return s.Mode != nil && s.Mode.Binds > 0 && s.Policy.Format >= s.Mode.Binds
}

// Agreements are the session's, in the order of the transcript.
func (s *State) Agreements() []Agreement { return s.AgreementsAfter(0) }

// AgreementCount is how many there are.
func (s *State) AgreementCount() int { return len(s.agreements) }

// AgreementsAfter are all agreements but the first n.
func (s *State) AgreementsAfter(n int) []Agreement {
	return slices.Clone(s.agreements[min(n, len(s.agreements)):])
}

// Agree notes that an offer binds its author and others from this act on.
func (t *Command) Agree(proposal string, others ...performatives.Agent) {
	if a, ok := t.agreementOn(proposal, others...); ok {
		t.binds(a)
	}
}

// agreementOn is the agreement of an offer's author and others, who accept it by this act.
func (t *Command) agreementOn(proposal string, others ...performatives.Agent) (Agreement, bool) {
	o, ok := t.State.Offer(proposal)
	if !ok {
		return Agreement{}, false
	}
	return Agreement{Name: proposal, Proposal: proposal, Parties: union([]performatives.Agent{o.Side}, others), Offer: o.Sequence, Acceptance: t.Next}, true
}

// SignAgreement notes the signature of the sender's side over the newest agreement.
func (t *Command) SignAgreement(signature string) {
	last := len(t.agreements) - 1
	if last < 0 {
		return
	}
	t.agreements = slices.Clone(t.agreements)
	signatures := maps.Clone(t.agreements[last].Signatures)
	if signatures == nil {
		signatures = map[performatives.Agent]string{}
	}
	signatures[t.Side] = signature
	t.agreements[last].Signatures = signatures
}

func (t *Command) binds(a Agreement) {
	a.Consented = !slices.ContainsFunc(a.Parties, func(party performatives.Agent) bool {
		p, _ := t.parties.Get(party)
		return p.unasked
	})
	t.agreements = append(slices.Clip(t.agreements), a)
}

// In a mode whose commitments bind, an accepted proposal is agreed terms, which bind nobody
// until an accepted COMMIT carries them out, or the session is closed as completed. Where people
// confirm an acceptance, they bind nobody until then.

// agreeTerms notes that the sender's side has accepted a proposal.
func (t *Command) agreeTerms() {
	if a, ok := t.agreementOn(t.Offer.ID, t.Side); ok {
		t.terms = append(slices.Clip(t.terms), a)
	}
}

// bindCommitment makes the agreement of a commitment that all have accepted. Of several that
// carry out one proposal, each makes an agreement of its own; the first is named by the proposal.
func (t *Command) bindCommitment(o *Offer) {
	if commitsToNothing(o) {
		return
	}
	a := Agreement{Name: o.ID, Commitment: o.ID, Offer: o.Sequence, Acceptance: t.Next}
	var before []performatives.Agent
	if p, ok := t.State.Offer(o.Supersedes); ok {
		a.Proposal, a.Offer, a.Commit = p.ID, p.Sequence, o.Sequence
		before = []performatives.Agent{p.Side}
		named := func(b Agreement) bool { return b.Name == p.ID }
		if i := slices.IndexFunc(t.terms, named); i >= 0 {
			before = t.terms[i].Parties
		}
		if !slices.ContainsFunc(t.agreements, named) {
			a.Name = p.ID
		}
	}
	var accepted []performatives.Agent
	for _, party := range t.order {
		if _, has := o.acceptedBy.Get(party); has {
			accepted = append(accepted, party)
		}
	}
	a.Parties = union(before, []performatives.Agent{o.Side}, accepted)
	t.binds(a)
}

// completeTerms makes the agreements of the terms that are agreed when the session is closed
// as completed. Where a commitment was accepted or waits, those who bind themselves do so by COMMIT.
func (t *Command) completeTerms() {
	if t.acceptedCommitments > 0 || t.openCommitments > 0 {
		return
	}
	for _, a := range t.terms {
		a.Close = t.Next
		t.binds(a)
	}
}

// BindConfirmed makes the agreement that people have confirmed.
func (t *Command) BindConfirmed() {
	for _, a := range t.terms {
		a.Confirmed = t.Next
		t.binds(a)
	}
}

// union is each agent of some lists once, in their order.
func union(lists ...[]performatives.Agent) (all []performatives.Agent) {
	for _, a := range slices.Concat(lists...) {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}
