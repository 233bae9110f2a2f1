package session

import (
	"slices"
	"time"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// A Turn waits for one side: the next word is its own (GATEWAYS.md G3). Side, Reference and
// Sequence identify it: once its side has answered, it is gone and does not come back.
type Turn struct {
	Side      performatives.Agent // the principal who is to answer
	Reference string              // what it answers, such as an offer; "" if a mode names nothing
	Sequence  uint64              // the entry since which it waits
	Since     time.Time           // when that was, on the session's clock
	Number    uint64              // turns taken, in a mode that counts them; else the entries so far
	Cap       uint64              // turns that the mode allows; 0 is no cap
}

// TurnOf is the turn that waits for an agent: its own, that of the principal for whom it is
// a full delegate, the result that it owes as another delegate, or one that waits so long that it
// may stand in. Nobody has a turn while the session is paused.
func (s *State) TurnOf(you performatives.Agent, at time.Time) (Turn, bool) {
	p, ok := s.parties.Get(you)
	if !ok || s.Phase.Over() || s.Phase == Escalated {
		return Turn{}, false
	}
	g := s.grantOf(p, s.clock(at))
	if g.ID != "" && g.Status == delegation.Offered {
		return Turn{Side: you, Reference: string(g.ID), Sequence: g.Sequence, Since: s.clock(s.Updated), Number: s.Next}, true
	}
	switch p.Role {
	case Delegate:
		switch {
		case g.Status != delegation.Active:
			return Turn{}, false
		case g.Authority == delegation.Full:
			return s.turnOf(g.Principal, at)
		case g.Result > 0:
			return Turn{}, false
		}
		return Turn{Side: you, Reference: string(g.ID), Sequence: g.Accepted, Since: s.clock(s.Updated), Number: s.Next}, true
	case Approver:
		return Turn{}, false
	case Arbiter:
		return s.toDecide(you)
	case Standby:
		turn, waits := s.turnOf(p.StandsFor, at)
		return turn, waits && s.parked(turn, at)
	default:
		return s.turnOf(you, at)
	}
}

// turnOf is the turn of a principal.
func (s *State) turnOf(side performatives.Agent, at time.Time) (Turn, bool) {
	if turn := s.mode().Turn; turn != nil && s.Phase >= Introduced {
		return turn(s, side, at)
	}
	return s.unanswered(side, at)
}

// unanswered is the offer of another side that a side may answer, or its own that it was
// asked about, whichever waits longest; else a query.
func (s *State) unanswered(side performatives.Agent, at time.Time) (Turn, bool) {
	now := s.clock(at)
	var oldest *Offer
	for _, o := range s.live.All() {
		if o.StatusAt(now) != Open || oldest != nil && oldest.moved <= o.moved {
			continue
		}
		_, said := o.acceptedBy.Get(side)
		if o.Side != side && !said && (o.To == "" || o.To == side) && len(s.OpenFields(o)) == 0 {
			oldest = o
		}
	}
	turn, waits := s.AskedAbout(side, at)
	if oldest != nil && (!waits || oldest.moved < turn.Sequence) {
		turn, waits = s.TurnOn(oldest, side), true
	}
	if !waits { // a query that nobody cares for is not to hide an offer
		return s.Queried(side)
	}
	return turn, waits
}

// AskedAbout is the offer of a side, open or accepted, about which a question has waited
// longest.
func (s *State) AskedAbout(side performatives.Agent, at time.Time) (Turn, bool) {
	now := s.clock(at)
	var oldest *Offer
	for id := range s.asking.All() {
		q, _ := s.questions.Get(id)
		if o, ok := s.Offer(q.Offer); ok && o.Side == side && o.StatusAt(now) <= Accepted && (oldest == nil || o.moved < oldest.moved) {
			oldest = o
		}
	}
	if oldest == nil {
		return Turn{}, false
	}
	return s.TurnOn(oldest, side), true
}

// TurnOn is a side's turn to answer an offer.
func (s *State) TurnOn(o *Offer, side performatives.Agent) Turn {
	return Turn{Side: side, Reference: o.ID, Sequence: o.moved, Since: o.movedAt, Number: s.Next}
}

// Turns is how many turns were taken, and the entry that took the newest: an offer, or an answer to a
// proposal or to a question. What answers the invitation, a commitment or a delegation takes none.
// A mode may count otherwise by its own rules.
func (s *State) Turns() (taken, newest uint64) { return s.taken, s.turned }

func (t *Command) takesTurn() bool {
	if t.Was <= Invited {
		return false
	}
	switch t.Act {
	case performatives.Propose, performatives.Counter:
		return true
	case performatives.Accept, performatives.Reject, performatives.Clarify:
		return t.Offer != nil && t.Offer.IsProposal()
	case performatives.Inform:
		return t.answersTo != "" && t.answersTo != t.invitation.ID
	default:
		return false
	}
}

// Awaits reports whether the session waits for an answer of this party, or of a human who has not acted: a
// turn is its own, or an escalation asks it.
func (s *State) Awaits(you performatives.Member, at time.Time) bool {
	if s.Phase == Escalated {
		if p, ok := s.parties.Get(you.Agent); ok {
			you = p.Member
		}
		return slices.ContainsFunc(s.asked, func(item *escalation.Item) bool { return item.Open() && item.Asks(you, at) })
	}
	_, waits := s.TurnOf(you.Agent, at)
	return waits
}

// executionTurn is what waits for a side: what was delivered to it, an amendment, a dispute, what
// it was asked, and what it owes.
func executionTurn(s *State, side performatives.Agent, at time.Time) (turn Turn, waits bool) {
	earliest := func(reference string, sequence uint64) {
		if !waits || sequence < turn.Sequence {
			turn, waits = Turn{Side: side, Reference: reference, Sequence: sequence, Since: s.clock(s.Updated), Number: s.Next}, true
		}
	}
	for id, key := range s.toAnswer.All() {
		o, _ := s.obligations.Get(key)
		if c, _ := s.Commitment(o.Commitment); o.Party != side && slices.Contains(c.Parties, side) {
			earliest(id, o.Delivery.Sequence)
		}
	}
	for _, d := range s.Disputes() {
		if d.waitsFor(s, side) {
			earliest(d.DisputeID, d.Sequence)
		}
	}
	for _, o := range s.live.All() {
		if o.Kind == anAmendment && o.StatusAt(s.clock(at)) == Open && s.awaits(o, side) {
			earliest(o.ID, o.moved)
		}
	}
	if asked, is := s.AskedAbout(side, at); is && (!waits || asked.Sequence < turn.Sequence) {
		turn, waits = asked, true
	}
	if !waits {
		turn, waits = s.Queried(side)
	}
	if o := s.firstOwed(side); !waits && o != nil {
		earliest(o.Name(), o.Since)
	}
	return turn, waits
}

// firstOwed is what a side has to deliver first; nil for nothing.
func (s *State) firstOwed(side performatives.Agent) *Obligation {
	it := s.owed.Iterator()
	it.Seek(string(side) + " ")
	_, key, ok := it.Next()
	if !ok {
		return nil
	}
	if o, _ := s.obligations.Get(key); o.Party == side {
		return o
	}
	return nil
}

// toDecide is the dispute that has waited longest for the arbiter.
func (s *State) toDecide(arbiter performatives.Agent) (Turn, bool) {
	for _, d := range s.Disputes() {
		if d.Status == DisputeOpen {
			return Turn{Side: arbiter, Reference: d.DisputeID, Sequence: d.Sequence, Since: s.clock(s.Updated), Number: s.Next}, true
		}
	}
	return Turn{}, false
}
