package modes

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

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
	Answering: []session.Rule{notOwnUnlessAsked, session.Addressed, session.StillOpen},
	After:     afterTurn,
	Duration:  clockOf,
	Deadlines: bilateralDeadlines,
	Ended:     endedByClock,
	Awaits:    func(s *session.State, side asp.Agent, _ time.Time) bool { return turns(s).next == side },
	View:      viewBilateral,
}

// Caps and clock by the kinds of the two sides.
const (
	capSystems = 6
	capMixed   = 8
	wallClock  = 24 * time.Hour // of two personal agents, from the first turn
)

// Statuses and reasons of a bilateral session.
const (
	statusNegotiating = "negotiating"
	statusPending     = "pending" // accepted: for the humans to confirm
	statusRejected    = "rejected"
	statusStalled     = "stalled"

	reasonTurnCap   = "turn_cap"
	reasonTimeout   = "timeout"
	reasonWithdrawn = "withdrawn"
)

// bilateral is the mode's state.
type bilateral struct {
	sides   [2]asp.Agent // the inviter first
	cap     int          // 0 is none
	clock   time.Duration
	began   time.Time // when the first turn was taken, on the session's clock
	next    asp.Agent
	count   int
	last    asp.Performative
	roles   [2]string // what each side said of its own user, in its last assessed turn
	why     string    // the last reasoning
	offer   string    // the open offer
	expires time.Time
	status  string
	outcome *outcome
}

type outcome struct {
	HasOpportunity bool         `json:"hasOpportunity"`
	AgreedRoles    []agreedRole `json:"agreedRoles"`
	Reasoning      string       `json:"reasoning"`
	TurnCount      int          `json:"turnCount"`
	Reason         string       `json:"reason,omitzero"`
}

type agreedRole struct {
	Agent asp.Agent `json:"agentId"`
	Role  string    `json:"role"`
}

func turns(s *session.State) bilateral {
	b, _ := s.Own.(bilateral)
	return b
}

// openBilateral works out cap and clock; the policy may only tighten them.
func openBilateral(t *session.Turn, policy jsontext.Value) (any, error) {
	ask, err := readPolicy[struct {
		TurnCap     *float64 `json:"turnCap"`
		WallClockMs *float64 `json:"wallClockMs"`
	}](policy)
	if err != nil {
		return nil, err
	}
	b := bilateral{status: statusNegotiating, sides: t.Pair()}
	b.next = b.sides[0]
	switch systems := kindCount(t, b.sides, asp.KindSystem); systems {
	case 2:
		b.cap = capSystems
	case 1:
		b.cap = capMixed
	default:
		b.clock = wallClock
	}
	limit, err := wholeNumber("turnCap", ask.TurnCap, 1)
	if err != nil {
		return nil, err
	}
	if limit > 0 {
		if b.cap > 0 && limit > b.cap {
			return nil, session.Violation("turn_cap", "policy.turnCap may only tighten: the cap of these two is %d", b.cap)
		}
		b.cap = limit
	}
	ms, err := wholeNumber("wallClockMs", ask.WallClockMs, 1)
	if err != nil {
		return nil, err
	}
	if clock := time.Duration(ms) * time.Millisecond; ms > 0 {
		if b.clock > 0 && clock > b.clock {
			return nil, session.Violation("wall_clock", "policy.wallClockMs may only tighten: the clock of these two is %d", b.clock.Milliseconds())
		}
		b.clock = clock
	}
	return b, nil
}

func kindCount(t *session.Turn, sides [2]asp.Agent, kind string) (n int) {
	for _, a := range sides {
		if t.PartyKind(a) == kind {
			n++
		}
	}
	return n
}

// takesTurn tells the acts that take turns from those that do not.
func takesTurn(t *session.Turn) bool {
	if t.Was <= session.Invited {
		return false
	}
	switch t.Act {
	case asp.Propose, asp.Counter, asp.Clarify:
		return true
	case asp.Accept, asp.Reject:
		return !t.OfDelegation()
	case asp.Inform:
		return t.AnswersQuestion()
	default:
		return false
	}
}

func noCommitments(t *session.Turn) error {
	if t.Act != asp.Commit {
		return nil
	}
	return session.Violation("no_commitments", "bilateral/1 ends with an ACCEPT; there is nothing to COMMIT")
}

func alternating(t *session.Turn) error {
	if b := turns(&t.State); takesTurn(t) && b.next != t.Side {
		return session.Refuse(session.WrongTurn, "it is the turn of %s", b.next).
			With(map[string]any{"next": b.next, "number": b.count})
	}
	return nil
}

func proposeFirstAndOnce(t *session.Turn) error {
	switch first := turns(&t.State).count == 0; {
	case !takesTurn(t):
		return nil
	case first && t.Act != asp.Propose:
		return session.Violation("propose_first", "the first turn is the inviter's PROPOSE")
	case !first && t.Act == asp.Propose:
		return session.Violation("propose_once", "only the first turn is a PROPOSE; answer with COUNTER, ACCEPT, REJECT or CLARIFY")
	}
	return nil
}

func onlyPersonsAsk(t *session.Turn) error {
	if t.Act == asp.Clarify && t.From.Kind == asp.KindSystem {
		return session.Violation("clarify_personal", "only a personal agent asks questions; a system agent answers with COUNTER, ACCEPT or REJECT")
	}
	return nil
}

// notOwnUnlessAsked lets the side that was asked amend its own offer, or
// reject the talk, instead of answering.
func notOwnUnlessAsked(t *session.Turn) error {
	if (t.Act == asp.Counter || t.Act == asp.Reject) && t.Questioned(t.Offer) {
		return nil
	}
	return session.NotOwn(t)
}

// afterTurn counts a turn and ends the session where it is over.
func afterTurn(t *session.Turn) {
	b := turns(&t.State)
	switch {
	case t.Phase == session.Failed:
		b.finish(statusRejected, "", b.why)
	case t.Phase == session.Closed:
		b.finish(statusRejected, reasonWithdrawn, b.why)
	case t.Act == asp.Withdraw && t.Offer != nil && t.Offer.ID == b.offer:
		b.finish(statusRejected, reasonWithdrawn, b.why)
		t.Carry(session.Closed, reasonWithdrawn)
	case takesTurn(t):
		b.take(t)
	}
	t.Own = b
}

// take is one turn: the cap is judged after it.
func (b *bilateral) take(t *session.Turn) {
	if b.count == 0 {
		b.began = t.Now
		t.LastsUntil(b.began.Add(b.clock))
	}
	side := 0
	if t.Side == b.sides[1] {
		side = 1
	}
	b.count, b.last, b.next = b.count+1, t.Act, b.sides[1-side]
	if t.Act != asp.Inform {
		a, _ := readAssessment(t)
		b.roles[side], b.why = a.SuggestedRoles.OwnUser, a.Reasoning
	}
	switch t.Act { //nolint:exhaustive // the acts that take turns; CLARIFY changes nothing more
	case asp.Propose, asp.Counter:
		offer := t.Offering()
		b.offer, b.expires = offer.ID, offer.Expires
	case asp.Inform:
		t.SettleAnswered()
	case asp.Accept:
		b.finish(statusPending, "", b.why)
		t.Carry(session.Closed, statusPending)
		return
	case asp.Reject:
		b.finish(statusRejected, "", b.why)
		t.Carry(session.Closed, statusRejected)
		return
	}
	if b.cap > 0 && b.count >= b.cap {
		b.finish(statusStalled, reasonTurnCap, b.why)
		t.Carry(session.Closed, reasonTurnCap)
	}
}

func (b *bilateral) finish(status, reason, why string) {
	b.status, b.next = status, ""
	b.outcome = &outcome{
		HasOpportunity: status == statusPending, AgreedRoles: []agreedRole{},
		Reasoning: why, TurnCount: b.count, Reason: reason,
	}
	if status == statusPending {
		for i, side := range b.sides {
			b.outcome.AgreedRoles = append(b.outcome.AgreedRoles, agreedRole{side, b.roles[i]})
		}
	}
}

func clockOf(s *session.State) time.Duration { return turns(s).clock }

// bilateralDeadlines are the clock and the expiry of the open offer: either
// ends the session as stalled.
func bilateralDeadlines(s *session.State) []session.Deadline {
	b := turns(s)
	if b.count == 0 || b.outcome != nil {
		return nil
	}
	var all []session.Deadline
	if b.clock > 0 {
		all = append(all, session.Deadline{Code: reasonTimeout, At: b.began.Add(b.clock), Ends: true, To: session.Closed})
	}
	if !b.expires.IsZero() {
		all = append(all, session.Deadline{Code: reasonTimeout, At: b.expires, Ends: true, Ref: b.offer, To: session.Closed})
	}
	return all
}

func endedByClock(t *session.Turn, _ session.Deadline) {
	b := turns(&t.State)
	b.finish(statusStalled, reasonTimeout, b.why)
	t.Own = b
}

// turnView is where the turns stand.
type turnView struct {
	Number int       `json:"number"` // turns taken
	Next   asp.Agent `json:"next,omitzero"`
	Cap    int       `json:"cap,omitzero"`  // absent: none
	Last   string    `json:"last,omitzero"` // the act of the last turn
}

func viewBilateral(s *session.State, _ time.Time, v *session.View) {
	b := turns(s)
	v.Status = b.status
	if b.outcome != nil {
		v.Outcome = b.outcome
	}
	turn := turnView{Number: b.count, Next: b.next, Cap: b.cap}
	if b.count > 0 {
		turn.Last = b.last.String()
	}
	v.Turn = turn
}
