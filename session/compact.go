package session

import (
	"bytes"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// Offers that are over stay in the state, for rules and views need their ids, authors and
// statuses. What they offered is in the transcript. Whoever keeps many states calls Compact
// after each entry, and Restore before Step judges a message that needs it: the outcome is
// that of a state which keeps everything.

// entryOverhead is about what an entry without a body takes.
const entryOverhead = 512

// Size is about how many bytes the state takes in memory.
func (s *State) Size() int { return s.size }

// sizeOf is about what an offer's body takes: its terms are decoded besides.
func sizeOf(o *Offer) int { return 2 * len(o.Body) }

// keeps counts what the state keeps of a message that is no offer.
func (t *Command) keeps() {
	t.size += entryOverhead
	switch t.Act {
	case performatives.Clarify, performatives.Delegate, performatives.Escalate:
		t.size += len(t.Message.RawBody)
	case performatives.Inform:
		if t.Was == Escalated {
			t.size += len(t.Message.RawBody)
		}
	default:
	}
}

// Compact leaves out what the offers that the last entry ended, or that Restore put
// back, offered, and what expired by then, where that is longer than so many bytes.
func (s State) Compact(longer int) State {
	for _, id := range slices.Concat(s.Last.ended, s.restored) {
		s.compact(id, longer)
	}
	s.Last.ended, s.restored = nil, nil
	now := expiryTime(s.clock(s.Updated))
	it := s.expiries.Iterator()
	it.Seek(s.compacted)
	for key, id, ok := it.Next(); ok && key < now; key, id, ok = it.Next() {
		s.compact(id, longer)
		s.compacted = key + "\x00"
	}
	return s
}

// CompactAll does it with all offers, after a replay.
func (s State) CompactAll(longer int) State {
	for id := range s.past.All() {
		s.compact(id, longer)
	}
	return s.Compact(longer)
}

// compact leaves out what an offer offered, unless it was accepted: that is still
// carried out.
func (s *State) compact(id string, longer int) {
	o, ok := s.Offer(id)
	if !ok || o.Compact || len(o.Body) <= longer || o.StatusAt(s.clock(s.Updated)) <= Accepted {
		return
	}
	less := *o
	less.Body, less.Terms, less.Compact = nil, nil, true
	s.replace(&less)
	s.size -= sizeOf(o)
}

func (s *State) replace(o *Offer) {
	if _, live := s.live.Get(o.ID); live {
		s.live = s.live.With(o.ID, o)
	} else {
		s.past = s.past.With(o.ID, o)
	}
}

// Needed are the compact offers that judging a message needs: what it refers to, what
// an escalation is about, and the offers that these replaced or carry out.
func (s *State) Needed(m *performatives.Message, at time.Time) []*Offer {
	if s.Phase.Over() {
		return nil
	}
	var found []*Offer
	if open := s.Escalation(); open != nil { // others are about the same offer
		found = s.AtIssue(open)
	}
	if body, ok := m.Body.(*performatives.EscalateBody); ok {
		if o := s.AtStake(body, s.SideOf(m.Sender, at), at); o != nil {
			return s.compactOf(found, o.ID, true)
		}
	}
	return s.compactOf(found, m.Body.Refers(), false)
}

// AtIssue are the compact offers that an escalation is about.
func (s *State) AtIssue(item *escalation.Item) []*Offer { return s.compactOf(nil, item.Offer, true) }

// compactOf adds an offer if it is compact, and the proposal that a commitment carries out;
// before adds also what the offer replaced.
func (s *State) compactOf(found []*Offer, id string, before bool) []*Offer {
	for more := true; more; before = false {
		o, ok := s.Offer(id)
		if !ok {
			break
		}
		if o.Compact {
			found = append(found, o)
		}
		more, id = before || o.IsCommitment(), o.Supersedes
	}
	return found
}

// Restore puts back what a compact offer offered, which is in its entry.
func (s State) Restore(id string, body jsontext.Value) (State, error) {
	o, ok := s.Offer(id)
	if !ok || !o.Compact {
		return s, nil
	}
	whole := *o
	whole.Body, whole.Compact = bytes.Clone(body), false
	if !o.IsCommitment() {
		var has struct {
			Terms jsontext.Value `json:"terms"`
		}
		if err := performatives.Unmarshal(body, &has, ""); err != nil {
			return s, err
		}
		whole.Terms = has.Terms
	}
	s.replace(&whole)
	s.size += sizeOf(&whole)
	s.restored = append(slices.Clip(s.restored), id)
	return s, nil
}
