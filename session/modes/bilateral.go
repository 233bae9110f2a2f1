package modes

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/delegation"
	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Bilateral is bilateral/1: two sides take turns to find out whether a match
// is good for both of them; a quality gate with a cap on turns, or a clock.
var Bilateral = &session.Mode{
	Name: "bilateral/1",
	Min:  2, Max: 2,
	Open:      openBilateral,
	Rules:     []session.Rule{noCommitments, alternating, proposeFirstAndOnce, onlyPersonsAsk, assessed},
	Answering: []session.Rule{notOwnUnlessAsked, addressedUnlessOwn, session.StillOpen, acceptsStanding},
	Effects:   map[asp.Performative]func(*session.Command){asp.Inform: closeAnswered},
	Binds:     6,
	After:     afterTurn,
	Confirms:  func(s *session.State) bool { return turns(s).confirm },
	Duration:  needs,
	Deadlines: bilateralDeadlines,
	Ended:     endedByClock,
	Turn:      turnOf,
	Needs:     needsAssessment,
	View:      viewBilateral,
}

// Caps and clock by the kinds of the two sides.
const (
	capSystems = 6
	capMixed   = 8
	wallClock  = 24 * time.Hour // of two personal agents, from the first turn
)

// bilateral is the mode's state.
type bilateral struct {
	sides   [2]asp.Agent // the inviter first
	cap     int64        // of turns; 0 is none
	clock   time.Duration
	began   time.Time // when the first turn was taken, on the session's clock
	next    asp.Agent
	moved   uint64    // the entry since which next is to speak
	movedAt time.Time // when that was, on the session's clock
	count   int64     // turns taken
	last    asp.Performative
	said    [2]assessment // of each side, in its last assessed turn
	why     string        // the last reasoning
	offer   string        // the open offer
	offered asp.MessageID // of the act that made it
	expires time.Time
	confirm bool // people confirm what is agreed

	standingOnly bool // an ACCEPT takes a PROPOSE only
	proposed     bool // the open offer is a PROPOSE

	status  string
	outcome *outcome
}

func turnOf(s *session.State, side asp.Agent, _ time.Time) (session.Turn, bool) {
	b := turns(s)
	return session.Turn{
		Side: side, Reference: b.offer, Sequence: b.moved, Since: b.movedAt, Number: uint64(b.count), Cap: uint64(b.cap), //nolint:gosec // both are at least 0
	}, b.next == side
}

func turns(s *session.State) bilateral {
	b, _ := s.Own.(bilateral)
	return b
}

// openBilateral works out cap and clock; the policy may only tighten them.
func openBilateral(t *session.Command, policy jsontext.Value) (any, error) {
	b := bilateral{status: statusNegotiating, sides: t.Pair()}
	b.next = b.sides[0]
	switch kindCount(t, b.sides, asp.KindSystem) {
	case 2:
		b.cap = capSystems
	case 1:
		b.cap = capMixed
	default:
		b.clock = wallClock
	}
	p := readPolicy(policy)
	limit, ms := p.number("turnCap", 1), p.number("wallClockMs", 1)
	b.confirm, b.standingOnly = p.truth("confirm", false), p.truth("acceptStandingOnly", false)
	if !t.Before(6) {
		p.publish()
	}
	if err := p.judged(); err != nil {
		return nil, err
	}
	switch {
	case b.cap > 0 && limit > b.cap:
		return nil, session.Violation("turn_cap", "policy.turnCap may only tighten: the cap of these two is %d", b.cap)
	case b.clock > 0 && ms > b.clock.Milliseconds():
		return nil, session.Violation("wall_clock", "policy.wallClockMs may only tighten: the clock of these two is %d", b.clock.Milliseconds())
	}
	if limit > 0 {
		b.cap = limit
	}
	if ms > 0 { // no session lasts longer than the longest
		b.clock = time.Duration(min(ms, session.LongestDuration.Milliseconds())) * time.Millisecond
	}
	return b, nil
}

func kindCount(t *session.Command, sides [2]asp.Agent, kind string) (n int) {
	for _, a := range sides {
		if t.PartyKind(a) == kind {
			n++
		}
	}
	return n
}

// takesTurn tells the acts that take turns from those that do not.
func takesTurn(t *session.Command) bool {
	if t.Was <= session.Invited {
		return false
	}
	switch t.Act {
	case asp.Propose, asp.Counter, asp.Clarify:
		return true
	case asp.Accept, asp.Reject:
		return !t.OfDelegation()
	case asp.Inform: // of who may speak for the side
		return t.AnswersQuestion() && (t.Grant == nil || t.Grant.Authority == delegation.Full)
	default:
		return false
	}
}

// noCommitments is for modes that an ACCEPT ends.
func noCommitments(t *session.Command) error {
	if t.Act != asp.Commit {
		return nil
	}
	return session.Violation("no_commitments", "%s ends with an ACCEPT; there is nothing to COMMIT", t.Mode.Name)
}

func alternating(t *session.Command) error {
	if b := turns(&t.State); takesTurn(t) && b.next != t.Side {
		return session.Refuse(session.WrongTurn, "it is the turn of %s", b.next).
			With(map[string]any{"next": b.next, "number": b.count})
	}
	return nil
}

func proposeFirstAndOnce(t *session.Command) error {
	switch first := turns(&t.State).count == 0; {
	case !takesTurn(t):
		return nil
	case first && t.Act != asp.Propose:
		return session.Violation("propose_first", "the first turn is the inviter's PROPOSE")
	case !first && t.Act == asp.Propose && !turns(&t.State).standingOnly:
		return session.Violation("propose_once", "only the first turn is a PROPOSE; answer with COUNTER, ACCEPT, REJECT or CLARIFY")
	}
	return nil
}

func onlyPersonsAsk(t *session.Command) error {
	if t.Act == asp.Clarify && t.From.Kind == asp.KindSystem {
		return session.Violation("clarify_personal", "only a personal agent asks questions; a system agent answers with COUNTER, ACCEPT or REJECT")
	}
	return nil
}

// notOwnUnlessAsked lets the side that was asked amend its own offer, or end the
// negotiation, instead of answering. This also holds after the question was withdrawn:
// it is that side's turn, and it could do nothing else. While the question is open it may
// also accept, as Index Network has it: that proposes the match to people, and binds nobody,
// since the other side has agreed to nothing.
func notOwnUnlessAsked(t *session.Command) error {
	b := turns(&t.State)
	switch {
	case b.last != asp.Clarify:
	case t.Act == asp.Counter, t.Act == asp.Reject:
		return nil
	case t.Act == asp.Accept && len(t.OpenFields(t.Offer)) > 0 && !b.confirm && !b.standingOnly && !t.Before(4):
		return nil
	}
	return session.NotOwn(t)
}

// acceptsStanding holds an ACCEPT to a PROPOSE that stands, where the policy says so: Index
// Network's newer rule, by which a COUNTER is a question, and who asked it decides.
func acceptsStanding(t *session.Command) error {
	b := turns(&t.State)
	if t.Act != asp.Accept || !b.standingOnly || b.proposed {
		return nil
	}
	return session.Violation("accept_without_offer", "ACCEPT takes a PROPOSE that stands, and %q is a COUNTER; answer it with PROPOSE, COUNTER, CLARIFY or REJECT", t.Offer.ID)
}

// addressedUnlessOwn lets the side that was asked answer its own offer although the
// offer is addressed to the other side.
func addressedUnlessOwn(t *session.Command) error {
	if t.Offer.Side == t.Side {
		return nil
	}
	return session.Addressed(t)
}

// closeAnswered: the turn that answers any question closes its CLARIFY.
func closeAnswered(t *session.Command) {
	if takesTurn(t) {
		t.CloseAnswered()
	}
}

// afterTurn counts a turn and ends the session where it is over.
func afterTurn(t *session.Command) {
	b := turns(&t.State)
	switch {
	case b.status == statusPending:
		b.confirmed(t)
	case t.Phase == session.Failed:
		b.finish(statusRejected, "")
	case t.Phase == session.Closed:
		b.finish(statusRejected, reasonWithdrawn)
	case t.Act == asp.Withdraw && t.Offer != nil && t.Offer.ID == b.offer:
		b.finish(statusRejected, reasonWithdrawn)
		t.Carry(session.Closed, reasonWithdrawn)
	case takesTurn(t):
		b.take(t)
		b.moved, b.movedAt = t.Next, t.Now
	case t.Was == session.Invited:
		b.moved, b.movedAt = t.Next, t.Now
	}
	t.Own = b
}

// capped reports whether no turn is left.
func (b *bilateral) capped() bool { return b.cap > 0 && b.count >= b.cap }

// take counts a turn. The cap is checked after it.
func (b *bilateral) take(t *session.Command) {
	if b.count == 0 {
		b.began = t.Now
		if b.clock > 0 {
			t.LastsUntil(b.began.Add(b.clock))
		}
	}
	side := 0
	if t.Side == b.sides[1] {
		side = 1
	}
	b.count, b.last, b.next = b.count+1, t.Act, b.sides[1-side]
	if t.Act != asp.Inform {
		a := readAssessment(t.Message.Body)
		b.said[side], b.why = a, a.reasoning
	}
	if offer := t.Offering(); offer != nil {
		if t.Act == asp.Propose && b.offer != "" {
			t.SetStatus(b.offer, session.Superseded)
		}
		b.offer, b.offered, b.expires, b.proposed = offer.ID, t.Message.ID, offer.Expires, t.Act == asp.Propose
	}
	switch {
	case t.Act == asp.Accept:
		b.finish(statusPending, "")
		b.agreed(t, side)
	case t.Act == asp.Reject && (!b.capped() || !t.Before(2)):
		b.finish(statusRejected, "")
		t.Carry(session.Closed, statusRejected)
	case b.capped(): // any other turn leaves nobody to answer it
		b.finish(statusStalled, reasonTurnCap)
		t.Carry(session.Closed, reasonTurnCap)
	}
}
