package session

import (
	"time"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// executionDeadlines are when the broker has to enter what becomes of an obligation or a dispute, the
// first of them, and when a session in which nothing is due ends.
func (s *State) executionDeadlines(all []Deadline, at time.Time) []Deadline {
	if !s.executing {
		return all
	}
	if s.owing == 0 && s.disputing == 0 {
		return append(all, Deadline{Code: ExecutionComplete, At: s.wall(s.quiet.Add(DisputeWindow), at), Ends: true, To: Closed})
	}
	if s.dues.Len() == 0 {
		return all
	}
	_, first, _ := s.dues.Iterator().Next()
	return append(all, s.dueEvent(first, at))
}

// dueEvent is what the broker enters of an obligation or a dispute.
func (s *State) dueEvent(of due, at time.Time) Deadline {
	d := Deadline{Enters: &performatives.EventData{}}
	if of.dispute != "" {
		dispute, _ := s.claims.Get(of.dispute)
		d.At, d.Ref = s.wall(dispute.due, at), of.dispute
		d.Enters.Event, d.Enters.DisputeID = performatives.Unresolved, of.dispute
		if s.arbiter.Agent == "" && s.shown(dispute) {
			d.Enters.Event, d.Enters.Decision = performatives.Decided, performatives.Upheld
		}
	} else {
		o, _ := s.obligations.Get(of.obligation)
		d.At, d.Ref = s.wall(o.due, at), o.Commitment
		d.Enters.Event, d.Enters.CommitmentID, d.Enters.Obligation = performatives.Breached, o.Commitment, performatives.ObligationID(o.ID)
		if o.Delivery != nil {
			d.Enters.Event, d.Enters.ReferenceID = performatives.Deemed, o.Delivery.ID
		}
	}
	d.Code, d.Enters.Due = d.Enters.Event, stamp(d.At)
	return d
}

// lapses is the deadline of an open escalation. One of a session in which something is due or disputed
// does not end that: who owes could get rid of it so.
func (s *State) lapses(item *escalation.Item) Deadline {
	d := Deadline{Code: EscalationExpired, At: item.Due, Ends: true, Ref: string(item.ID), To: Failed}
	if s.executing && (s.owing > 0 || s.disputing > 0 || item.OfDelivery()) {
		d.Ends, d.Enters = false, &performatives.EventData{Event: performatives.EscalationLapsed, EscalationID: string(item.ID), Due: stamp(item.Due)}
	}
	return d
}

// Lapses reports whether an escalation that nobody answers ends its pause, and not the session.
func (s *State) Lapses(id escalation.ID) bool {
	item, known := s.items.Get(id)
	return known && !s.lapses(item).Ends
}

// happened carries out what the broker enters.
func (t *Command) happened(d Deadline) {
	switch e := d.Enters; e.Event {
	case performatives.Breached:
		o, _ := t.Obligation(e.CommitmentID, string(e.Obligation))
		breached := *o
		breached.Breached, breached.Breaches, breached.BreachedIn = true, o.Breaches+1, t.Next
		t.setObligation(breached)
		t.concerns(o.key())
	case performatives.Deemed:
		o, _ := t.Obligation(e.CommitmentID, string(e.Obligation))
		t.take(*o, nil, ObligationDeemed)
		t.endsAcceptance(e.ReferenceID)
	case performatives.Decided:
		dispute, _ := t.claims.Get(e.DisputeID)
		t.endDispute(*dispute, e.Decision)
	case performatives.Unresolved:
		dispute, _ := t.claims.Get(e.DisputeID)
		t.endDispute(*dispute, performatives.Unresolved)
	case performatives.EscalationLapsed:
		item, _ := t.items.Get(escalation.ID(e.EscalationID))
		t.endItem(item, t.Message.Sender, escalation.EndExpired)
		t.resumes()
	}
}

// endsAcceptance ends the item that asks people to accept a delivery that has counted as accepted
// meanwhile: no pause is longer than a session may bank.
func (t *Command) endsAcceptance(delivery string) {
	for _, item := range t.asked {
		if item.Open() && item.OfDelivery() && item.Body.ReferenceID == delivery {
			t.endItem(item, t.Message.Sender, escalation.EndClosed)
			t.resumes()
		}
	}
}

// resumes ends a pause in which nothing is left to decide.
func (t *Command) resumes() {
	if decided(&t.State) {
		t.Phase = t.resumeTo
	}
}
