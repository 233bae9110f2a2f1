package session

import (
	"iter"
	"time"
)

// What is owed in a session is indexed as it changes: by when it is due, by whom, and by where it stands.

// Unmet counts the obligations of which something is still due, or to be answered.
type Unmet struct {
	Due      int
	Asserted int // delivered, and not answered yet
	Overdue  int // breached, and still due
	Disputed int
}

// Unmet counts those of the session; none once it is over.
func (s *State) Unmet() Unmet {
	if s.Phase.Over() {
		return Unmet{}
	}
	return s.unmet
}

func (n *Unmet) count(o *Obligation, by int) {
	switch o.Status() {
	case ObligationDue, ObligationPartial:
		n.Due += by
	case ObligationAsserted:
		n.Asserted += by
	case ObligationBreached:
		n.Overdue += by
	case ObligationDisputed:
		n.Disputed += by
	}
}

// Owing is how many obligations keep the session open.
func (s *State) Owing() int { return s.owing }

// Upcoming are the obligations of which the broker enters an event once a time on the session's clock has
// passed, the first first: a deadline, or the end of the time in which a delivery is answered.
func (s *State) Upcoming() iter.Seq2[time.Time, *Obligation] {
	return func(yield func(time.Time, *Obligation) bool) {
		if !s.executing {
			return
		}
		for it := s.dues.Iterator(); !it.Done(); {
			_, of, _ := it.Next()
			if o, is := s.obligations.Get(of.obligation); is && !yield(o.due, o) {
				return
			}
		}
	}
}

// OpenObligations are those of which something is still due, to be answered or disputed, the one due first
// first; none once the session is over.
func (s *State) OpenObligations() iter.Seq[*Obligation] {
	return func(yield func(*Obligation) bool) {
		if !s.executing || s.Phase.Over() {
			return
		}
		for it := s.openDues.Iterator(); !it.Done(); {
			_, key, _ := it.Next()
			if o, is := s.obligations.Get(key); is && !yield(o) {
				return
			}
		}
	}
}

// ObligationsChanged is the number of the entry that changed an obligation last, 0 for none.
func (s *State) ObligationsChanged() uint64 { return s.obligationsChanged }

// DisputesChanged is the number of the entry that changed a dispute last, 0 for none.
func (s *State) DisputesChanged() uint64 { return s.disputesChanged }

// index enters an obligation among what is due, by when and by whom.
func (t *Command) index(o *Obligation) {
	key := o.key()
	t.unmet.count(o, 1)
	t.obligationsChanged = t.Next
	if o.open() {
		t.openDues = t.openDues.Set(openKey(o), key)
	}
	if !o.due.IsZero() {
		t.dues = t.dues.Set(dueKey(o.due, key), due{obligation: key})
	}
	if o.Ended == "" && o.Holds() {
		t.owing++
	}
	switch {
	case o.Delivery != nil:
		t.toAnswer = t.toAnswer.With(o.Delivery.ID, key)
	case o.owes():
		t.owed = t.owed.Set(owedKey(o), key)
	}
}

func (t *Command) unindex(o *Obligation) {
	key := o.key()
	t.unmet.count(o, -1)
	if o.open() {
		t.openDues = t.openDues.Delete(openKey(o))
	}
	if !o.due.IsZero() {
		t.dues = t.dues.Delete(dueKey(o.due, key))
	}
	if o.Ended == "" && o.Holds() {
		t.owing--
	}
	switch {
	case o.Delivery != nil:
		t.toAnswer = t.toAnswer.Without(o.Delivery.ID)
	case o.owes():
		t.owed = t.owed.Delete(owedKey(o))
	}
}

// owes reports whether the obligation waits for its party.
func (o *Obligation) owes() bool { return o.Holds() && o.StillDue() }

// open reports whether something of it is still due, to be answered or disputed.
func (o *Obligation) open() bool { return o.Ended == "" || o.Disputes > 0 }

// openKey sorts open obligations by when something has to be done about them; what has no date comes last.
func openKey(o *Obligation) string {
	by := o.deadline
	if o.Delivery != nil {
		by = o.Delivery.Until
	}
	if by.IsZero() || o.Ended != "" {
		return "never|" + o.key()
	}
	return dueKey(by, o.key())
}

// A due is what the broker has to enter at a time: of an obligation, or a dispute.
type due struct{ obligation, dispute string }

func dueKey(at time.Time, key string) string { return expiryTime(at) + "|" + key }

// owedKey sorts what a party owes by when it is due.
func owedKey(o *Obligation) string {
	if o.deadline.IsZero() {
		return string(o.Party) + " never|" + o.key()
	}
	return string(o.Party) + " " + dueKey(o.deadline, o.key())
}

// rests notes since when nothing is due or disputed.
func (t *Command) rests() {
	switch {
	case t.owing > 0 || t.disputing > 0:
		t.quiet = time.Time{}
	case t.quiet.IsZero():
		t.quiet = t.Now
	}
}
