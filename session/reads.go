package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/internal/persist"
	"github.com/parley-asp/parley/performatives"
)

// What views of a State are made of, besides its fields.

// A ChainHead is the end of the transcript, and the link of the next entry for
// a sender who makes its own.
type ChainHead struct {
	Sequence *uint64            `json:"sequenceNumber,omitzero"` // of the last entry; absent before the first
	Hash     performatives.Hash `json:"hash"`
	Next     ChainLink          `json:"next"`
}

// A ChainLink is what the next entry's sequenceNumber and previousHash must be.
type ChainLink struct {
	Sequence     uint64             `json:"sequenceNumber"`
	PreviousHash performatives.Hash `json:"previousHash"`
}

// ChainHead is the end of the transcript.
func (s *State) ChainHead() ChainHead {
	head := ChainHead{Hash: s.Head, Next: ChainLink{s.Next, s.Head}}
	if s.Next > 0 {
		last := s.Next - 1
		head.Sequence = &last
	}
	return head
}

// Invitation is the one in force, nil while IDLE.
func (s *State) Invitation() *Offer { return s.invitation }

// Offers are all invitations, proposals and commitments in the order of the
// transcript: no entry makes two.
func (s *State) Offers() []*Offer {
	all := make([]*Offer, 0, s.live.Len()+s.past.Len())
	for _, some := range []persist.Table[string, *Offer]{s.past, s.live} {
		for _, o := range some.All() {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *Offer) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all
}

// AcceptedBy reports whether a side has accepted the offer.
func (o *Offer) AcceptedBy(side performatives.Agent) bool {
	_, accepted := o.acceptedBy.Get(side)
	return accepted
}

// Acceptances is how many sides have accepted the offer.
func (o *Offer) Acceptances() int { return o.acceptedBy.Len() }

// MaxConcluded is how many entries Concluded has at most: the first ones.
const MaxConcluded = 1_000

// Concluded are the entries after which something had been accepted, no offer was open, and nothing was due or
// disputed, while the session went on: each ends a negotiation, and what comes after it begins another. The list
// is never changed.
func (s *State) Concluded() []uint64 { return slices.Clip(s.concluded) }

// Accepted is the entry that accepted a proposal or a commitment last, 0 for none.
func (s *State) Accepted() uint64 { return s.acceptedIn }

// conclude notes whether the entry ends a negotiation. Its work does not grow with the session.
func (t *Command) conclude() {
	n := len(t.concluded)
	switch {
	case t.acceptedIn == 0 || n > 0 && t.acceptedIn <= t.concluded[n-1] || n == MaxConcluded, t.Phase.Over(), t.Phase == Escalated:
	case t.owing > 0, t.disputing > 0: // it is carried out first
	case t.openCommitments > 0, t.openTerms.Len() > t.expiries.Len(), t.firstExpiring(t.Now) != nil:
	default:
		t.concluded = append(slices.Clip(t.concluded), t.Next)
	}
}

// OpenFields are the fields of an offer that still wait for answers, sorted.
func (s *State) OpenFields(o *Offer) []string {
	if o.questions.Len() == 0 {
		return nil
	}
	var fields []string
	for id := range o.questions.All() {
		if q, ok := s.questions.Get(id); ok {
			fields = append(fields, q.Open...)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// Grants are all delegations in the order of the transcript.
func (s *State) Grants() []delegation.Grant { return s.GrantsAfter(0) }

// GrantsAfter are all delegations but the first n.
func (s *State) GrantsAfter(n int) []delegation.Grant {
	later := s.grantOrder[min(n, len(s.grantOrder)):]
	all := make([]delegation.Grant, len(later))
	for i, id := range later {
		all[i], _ = s.grants.Get(id)
	}
	return all
}

// GrantsOf are the delegations that somebody accepted or may accept, the accepted one
// first; without any the last that it had, the zero Grant for none.
func (s *State) GrantsOf(p Party, at time.Time) []delegation.Grant {
	if all := s.standing(p, s.clock(at)); len(all) > 0 {
		return all
	}
	g, _ := s.grants.Get(p.Grant)
	return []delegation.Grant{g}
}

// Bound is what the last ruling lets a side agree to.
func (s *State) Bound(side performatives.Agent) (*escalation.Bound, bool) { return s.bounds.Get(side) }

// Clock is the session's clock at a time of the broker's.
func (s *State) Clock(at time.Time) time.Time { return s.clock(at) }

// Wall is a time of the session's clock on the broker's, as far as is known at
// a time: it moves on while the session is paused.
func (s *State) Wall(onClock, at time.Time) time.Time { return s.wall(onClock, at) }

// ClockStopped reports whether the session's clock stands still at a time: it is
// paused, and may bank more.
func (s *State) ClockStopped(at time.Time) bool {
	return s.Phase == Escalated && s.bankedAt(at) < s.mostPaused()
}

// ClockRuns is when a clock that stands still at a time goes on at the latest.
func (s *State) ClockRuns(at time.Time) time.Time { return at.Add(s.mostPaused() - s.bankedAt(at)) }

// Sides are the principals who negotiate, in the order in which they came.
func (s *State) Sides() []performatives.Agent {
	var sides []performatives.Agent
	for _, a := range s.order {
		if p, _ := s.parties.Get(a); p.Role <= Invitee {
			sides = append(sides, a)
		}
	}
	return sides
}

// Awaited are the principals for whose answer an open offer waits.
func (s *State) Awaited(o *Offer) []performatives.Agent {
	awaited := []performatives.Agent{}
	for _, a := range s.Sides() {
		if s.awaits(o, a) {
			awaited = append(awaited, a)
		}
	}
	return awaited
}

// OpenQuestions are the clarifications with fields that nobody has answered, oldest first.
func (s *State) OpenQuestions() []*Question {
	var open []*Question
	for id := range s.asking.All() {
		if q, ok := s.questions.Get(id); ok {
			open = append(open, q)
		}
	}
	slices.SortFunc(open, func(a, b *Question) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return open
}
