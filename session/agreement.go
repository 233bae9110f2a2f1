package session

import (
	"slices"

	"github.com/parley-asp/parley/performatives"
)

// An Agreement is an offer that binds its parties since it was accepted.
type Agreement struct {
	Proposal   string
	Parties    []performatives.Agent // who made the offer comes first
	Offer      uint64                // the entry with the offer
	Acceptance uint64                // the entry that accepted it
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
	o, ok := t.State.Offer(proposal)
	if !ok {
		return
	}
	parties := append([]performatives.Agent{o.Side}, slices.DeleteFunc(others, func(a performatives.Agent) bool { return a == o.Side })...)
	t.agreements = append(slices.Clip(t.agreements), Agreement{
		Proposal: proposal, Parties: parties, Offer: o.Sequence, Acceptance: t.Next,
	})
}
