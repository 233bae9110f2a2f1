package modes

import (
	"time"

	"github.com/parley-asp/parley/internal/persist"
	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// convergent is the mode's state. What the peers agree on is counted as they
// accept, so that an act costs the same among a thousand as among ten.
type convergent struct {
	initiator   asp.Agent
	coordinator bool
	chair       bool // its acceptance does not count, and its COMMIT does
	peers       int  // whose acceptance counts
	acceptance  string
	keepLive    bool               // a counter leaves its target live
	maxRounds   int64              // 0 is no bound
	anyReject   bool               // every REJECT is terminal
	version     string             // of the policy, "" for none
	authority   map[asp.Agent]bool // who commits besides the initiator; never changed

	othersCommit bool // and the initiator does not, unless authority says so
	peersStay    bool // before a COMMIT, only the initiator and who commits may CLOSE

	rounds    int64
	slots     persist.Table[asp.Agent, string] // who accepts which offer
	votes     persist.Table[string, votes]     // by offer
	meeting   persist.Table[string, bool]      // offers that meet the criterion, live or not: each has a slot that names it
	terminal  *shownRejection                  // the newest, nil for none: while it stands there is no other
	refused   persist.Table[string, refusal]   // rejections that are not terminal, by peer and offer
	committed string                           // the offer agreed on
	closed    bool
}

// votes count an offer's acceptances.
type votes struct {
	all       int
	byOthers  int // than its author
	initiator bool
}

// A refusal is a rejection that is not terminal, and its entry.
type refusal struct {
	shownRejection
	entry uint64
}

func refusalOf(side asp.Agent, offer string) (key string) { return string(side) + " " + offer }

// A shownRejection is a rejection as it is shown: terminal, or not.
type shownRejection struct {
	Agent    asp.Agent `json:"agentId"`
	Proposal string    `json:"proposalId"`
}

// Phases of the projection.
const (
	phaseNegotiating = "Negotiating"
	phaseConverged   = "Converged"
	phaseTerminal    = "TerminalRejected"
	phaseCommitted   = "Committed"
)

func peers(s *session.State) convergent {
	c, _ := s.Own.(convergent)
	return c
}

// acceptors are the peers who accept an offer, in the order in which they joined.
func (c convergent) acceptors(s *session.State, offer string) (all []asp.Agent) {
	for _, a := range s.Participants() {
		if id, filled := c.slots.Get(a); filled && id == offer {
			all = append(all, a)
		}
	}
	return all
}

// live reports whether an offer can still be accepted.
func live(s *session.State, id string, now time.Time) bool {
	o, ok := s.Offer(id)
	return ok && o.IsProposal() && o.StatusAt(now) == session.Open
}

// accepted is the one live offer that meets the criterion, "" for none or several.
func (c convergent) accepted(s *session.State, now time.Time) (id string) {
	if c.committed != "" {
		return c.committed
	}
	for offer := range c.meeting.All() {
		if !live(s, offer, now) {
			continue
		}
		if id != "" {
			return ""
		}
		id = offer
	}
	return id
}

// rejected reports whether a terminal rejection stands: its offer is live.
func (c convergent) rejected(s *session.State, now time.Time) bool {
	return c.terminal != nil && live(s, c.terminal.Proposal, now)
}

func (c convergent) phase(s *session.State, now time.Time) string {
	switch {
	case c.closed:
		return phaseCommitted
	case c.rejected(s, now):
		return phaseTerminal
	case c.accepted(s, now) != "":
		return phaseConverged
	}
	return phaseNegotiating
}

// fillSlot: the last acceptance of a peer counts.
func fillSlot(t *session.Command) {
	c := peers(&t.State)
	c.empty(&t.State, t.Side)
	c.vote(&t.State, t.Side, t.Offer.ID, 1)
	c.refused = c.refused.Without(refusalOf(t.Side, t.Offer.ID))
	c.slots = c.slots.With(t.Side, t.Offer.ID)
	t.Own = c
}

// empty takes a peer's acceptance back.
func (c *convergent) empty(s *session.State, side asp.Agent) {
	if id, filled := c.slots.Get(side); filled {
		c.vote(s, side, id, -1)
		c.slots = c.slots.Without(side)
	}
}

func (c *convergent) vote(s *session.State, side asp.Agent, id string, by int) {
	v, voted := c.votes.Get(id)
	if !voted && by < 0 {
		return // withdrawn, with all its votes
	}
	author := false
	if o, ok := s.Offer(id); ok {
		author = o.Side == side
	}
	if !c.chair || side != c.initiator {
		v.all += by
	}
	if !author {
		v.byOthers += by
	}
	if side == c.initiator {
		v.initiator = by > 0
	}
	c.votes = c.votes.With(id, v)
	if c.met(v) {
		c.meeting = c.meeting.With(id, true)
	} else {
		c.meeting = c.meeting.Without(id)
	}
}

// met is the criterion. Authors are peers, for a coordinator offers nothing.
func (c *convergent) met(v votes) bool {
	switch c.acceptance {
	case counterparty:
		return v.byOthers == c.peers-1
	case initiatorOnly:
		return v.initiator
	}
	return v.all == c.peers
}

// noteRejection empties the slot of who had accepted the offer, and notes a
// rejection for good.
func noteRejection(t *session.Command) {
	c := peers(&t.State)
	if id, _ := c.slots.Get(t.Side); id == t.Offer.ID {
		c.empty(&t.State, t.Side)
	}
	if body, ok := t.Message.Body.(*asp.RejectBody); ok && (body.Terminal || c.anyReject) {
		c.terminal = &shownRejection{t.Side, t.Offer.ID}
		c.refused = c.refused.Without(refusalOf(t.Side, t.Offer.ID))
	} else {
		c.refused = c.refused.With(refusalOf(t.Side, t.Offer.ID), refusal{shownRejection{t.Side, t.Offer.ID}, t.Next})
	}
	t.Own = c
}

func retireCountered(t *session.Command) {
	c := peers(&t.State)
	c.rounds++
	t.Own = c
	if !c.keepLive {
		t.SetStatus(t.Offer.ID, session.Countered)
	}
}

// emptySlots: a withdrawn offer takes its acceptances and its rejection along.
// The slots that name it stay, and no longer mean anything.
func emptySlots(t *session.Command) {
	c := peers(&t.State)
	c.votes, c.meeting = c.votes.Without(t.Offer.ID), c.meeting.Without(t.Offer.ID)
	if c.terminal != nil && c.terminal.Proposal == t.Offer.ID {
		c.terminal = nil
	}
	t.Own = c
}
