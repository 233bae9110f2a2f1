package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// What a mode may ask of a turn and a state, besides their fields.

// Pair are the two principals of a session that is being opened: the inviter first.
func (t *Command) Pair() [2]performatives.Agent {
	return [2]performatives.Agent{t.inviter, t.opening.Invitees[0]}
}

// Other is the other one of two principals.
func (s *State) Other(side performatives.Agent) performatives.Agent {
	for _, a := range s.order {
		if p, _ := s.parties.Get(a); p.Role <= Invitee && a != side {
			return a
		}
	}
	return ""
}

// PartyKey is the key that a party joined with; "" for none.
func (s *State) PartyKey(a performatives.Agent) performatives.Key {
	p, _ := s.parties.Get(a)
	return p.Key
}

// OwnKey is the party's own key, if it joined with one: it may differ from the one that the
// installation signs its entries with.
func (s *State) OwnKey(a performatives.Agent) performatives.Key {
	p, _ := s.parties.Get(a)
	return cmp.Or(p.DIDKey, p.Key)
}

// DID is the one that a principal has registered, "" for none.
func (s *State) DID(a performatives.Agent) string {
	p, _ := s.parties.Get(a)
	if p.Role > Invitee {
		return ""
	}
	return p.DID
}

// PinnedKeys are all keys that the transcript has pinned for a party, the newest first.
func (s *State) PinnedKeys(a performatives.Agent) []performatives.Key {
	p, _ := s.parties.Get(a)
	keys := slices.DeleteFunc(slices.Clone(p.keys), func(k performatives.Key) bool { return k == "" })
	slices.Reverse(keys)
	return keys
}

// OfDelegation reports whether an ACCEPT, REJECT or WITHDRAW is of a delegation.
func (t *Command) OfDelegation() bool { return t.about != nil }

// Offering is the offer that the act makes, nil for none.
func (t *Command) Offering() *Offer { return t.offering }

// LastsUntil lets a session whose invitation set no duration last until after
// a time on its clock, so that a mode's own deadline can come first.
func (t *Command) LastsUntil(onClock time.Time) {
	if later := onClock.Add(time.Minute); t.Agreed.MaxDuration == 0 && t.duration.Before(later) {
		t.duration = later
	}
}

// NewestLive is the newest proposal that is open at a time on the session's clock, else the
// newest that expired and that nothing else has happened to; nil for none.
func (s *State) NewestLive(now time.Time) (newest *Offer) {
	open := func(o *Offer) bool { return o.StatusAt(now) == Open }
	for _, o := range s.live.All() {
		if o.IsProposal() && (newest == nil || open(o) && !open(newest) || open(o) == open(newest) && o.Sequence > newest.Sequence) {
			newest = o
		}
	}
	return newest
}

// SortFaults puts faults in the order of their paths.
func SortFaults(faults []Fault) {
	slices.SortFunc(faults, func(a, b Fault) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule)) })
}
