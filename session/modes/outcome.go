package modes

import (
	"time"

	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// How a bilateral session ends, and how it is shown.

// Statuses and reasons of a bilateral session.
const (
	statusNegotiating = "negotiating"
	statusPending     = "pending" // accepted: for the humans to confirm
	statusConfirmed   = "confirmed"
	statusDeclined    = "declined"
	statusRejected    = "rejected"
	statusStalled     = "stalled"

	reasonTurnCap   = "turn_cap"
	reasonTimeout   = "timeout"
	reasonWithdrawn = "withdrawn"
)

type outcome struct {
	HasOpportunity bool         `json:"hasOpportunity"`
	AgreedRoles    []agreedRole `json:"agreedRoles"`
	Reasoning      string       `json:"reasoning"`
	TurnCount      int64        `json:"turnCount"`
	Reason         string       `json:"reason,omitzero"`
}

type agreedRole struct {
	Agent asp.Agent `json:"agentId"`
	Role  string    `json:"role"`
}

func (b *bilateral) finish(status, reason string) {
	agrees := status == statusPending || status == statusConfirmed
	b.status, b.next = status, ""
	b.outcome = &outcome{
		HasOpportunity: agrees, AgreedRoles: []agreedRole{},
		Reasoning: b.why, TurnCount: b.count, Reason: reason,
	}
	if agrees {
		for i, side := range b.sides {
			b.outcome.AgreedRoles = append(b.outcome.AgreedRoles, agreedRole{side, b.said[i].ownUser})
		}
	}
}

// needs is how long a session lasts by default: its clock, or its turns, each of which may
// wait until a standby takes it (GATEWAYS.md G3).
func needs(s *session.State) time.Duration {
	b, parked := turns(s), s.Parked()
	switch {
	case parked == 0: // of a session that was opened before there were standbys
		return b.clock
	case b.cap > 0:
		return time.Duration(min(float64(b.cap)*float64(parked+claimed), float64(session.LongestDuration)))
	}
	return min(b.clock+parked, session.LongestDuration)
}

// claimed is how long a turn may be claimed before it waits again.
const claimed = 6 * time.Hour

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

// endedByClock: whatever deadline it was, time ran out on the two.
func endedByClock(t *session.Command, _ session.Deadline) {
	b := turns(&t.State)
	b.finish(statusStalled, reasonTimeout)
	t.Own = b
}

// turnView is where the turns stand.
type turnView struct {
	Number int64     `json:"number"` // turns taken
	Next   asp.Agent `json:"next,omitzero"`
	Cap    int64     `json:"cap,omitzero"`  // absent: none
	Last   string    `json:"last,omitzero"` // the act of the last turn
}

// bilateralView is what the mode adds to the view.
type bilateralView struct {
	Status    string         `json:"status"`
	Outcome   *outcome       `json:"outcome,omitzero"` // at the end
	Turn      turnView       `json:"turn"`
	Confirmed []confirmation `json:"confirmations,omitzero"`
}

func viewBilateral(s *session.State, _ time.Time) any {
	b := turns(s)
	v := bilateralView{Status: b.status, Outcome: b.outcome, Turn: turnView{Number: b.count, Next: b.next, Cap: b.cap}, Confirmed: confirmations(s)}
	if b.count > 0 {
		v.Turn.Last = b.last.String()
	}
	return v
}
