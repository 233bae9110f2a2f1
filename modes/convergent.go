package modes

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/persist"
	"github.com/parley-asp/parley/session"
)

// Convergent is convergent/1: peers refine offers until all accept the same
// one; then the initiator commits.
var Convergent = &session.Mode{
	Name: "convergent/1",
	Min:  2, Max: 1000,
	Open:       openConvergent,
	Rules:      []session.Rule{nothingAfterTerminal, coordinatorStaysOut, withinRounds, commitsRightly},
	Answering:  []session.Rule{nobodyAsksThemselves, session.StillOpen, session.NothingPending},
	Committing: []session.Rule{},
	Effects: map[asp.Performative]func(*session.Turn){
		asp.Accept: fillSlot, asp.Reject: noteRejection, asp.Counter: retireCountered, asp.Withdraw: emptySlots,
	},
	After:  afterCommit,
	Awaits: awaitsPeer,
	View:   viewConvergent,
}

// Who has to accept an offer for the peers to converge on it.
const (
	allParties    = "all_parties"
	counterparty  = "counterparty" // all but the offer's author
	initiatorOnly = "initiator"
)

// Phases of the projection.
const (
	phaseNegotiating = "Negotiating"
	phaseConverged   = "Converged"
	phaseTerminal    = "TerminalRejected"
	phaseCommitted   = "Committed"
)

// convergent is the mode's state. What the peers agree on is counted as they
// accept, so that an act costs the same among a thousand as among ten.
type convergent struct {
	initiator   asp.Agent
	coordinator bool
	peers       int
	acceptance  string
	keepLive    bool // a counter leaves its target live
	maxRounds   int  // 0 is no bound
	authority   []asp.Agent

	rounds    int
	slots     persist.Table[asp.Agent, string]   // who accepts which offer
	votes     persist.Table[string, votes]       // by offer
	meeting   persist.Table[string, bool]        // offers that meet the criterion, live or not
	terminal  persist.Table[string, []asp.Agent] // who rejected which offer for good
	committed string                             // the offer agreed on
	closed    bool
}

// votes count an offer's acceptances.
type votes struct {
	all       int
	byOthers  int // than its author
	initiator bool
}

func peers(s *session.State) convergent {
	c, _ := s.Own.(convergent)
	return c
}

type convergentPolicy struct {
	InitiatorRole   string      `json:"initiatorRole"`
	CounterRetires  *bool       `json:"counterRetires"`
	MaxRounds       *float64    `json:"maxRounds"`
	Acceptance      string      `json:"acceptance"`
	CommitAuthority []asp.Agent `json:"commitAuthority"`
}

func openConvergent(t *session.Turn, policy jsontext.Value) (any, error) {
	ask, err := readPolicy[convergentPolicy](policy)
	if err != nil {
		return nil, err
	}
	c := convergent{initiator: t.Inviter(), peers: len(t.Opening().Invitees) + 1, acceptance: allParties, authority: ask.CommitAuthority}
	switch ask.InitiatorRole {
	case "", "peer", "participant":
	case "coordinator":
		c.coordinator = true
		c.peers--
	default:
		return nil, policyFault("initiatorRole", "enum", "initiatorRole is peer or coordinator")
	}
	switch ask.Acceptance {
	case "":
	case allParties, counterparty, initiatorOnly:
		c.acceptance = ask.Acceptance
	default:
		return nil, policyFault("acceptance", "enum", "acceptance is all_parties, counterparty or initiator")
	}
	if c.maxRounds, err = wholeNumber("maxRounds", ask.MaxRounds, 0); err != nil {
		return nil, err
	}
	c.keepLive = ask.CounterRetires != nil && !*ask.CounterRetires
	return c, c.sound(t)
}

// sound refuses parameters with which nobody could ever agree.
func (c convergent) sound(t *session.Turn) error {
	switch {
	case c.peers < 2:
		return session.Violation("parties", "convergent/1 needs two peers besides a coordinator")
	case c.coordinator && c.acceptance == initiatorOnly:
		return session.Violation("policy", "a coordinator accepts nothing, so acceptance cannot be the initiator's")
	}
	for _, a := range c.authority {
		if _, err := asp.ParseAgent(string(a)); err != nil {
			return policyFault("commitAuthority", "format", "commitAuthority lists the URIs of principals")
		}
		if a != c.initiator && !slices.Contains(t.Opening().Invitees, a) {
			return session.Violation("policy", "%s of commitAuthority takes no part in the session", a)
		}
	}
	return nil
}

// afterTerminal are the acts that are heard while a terminal rejection stands.
var afterTerminal = map[asp.Performative]bool{
	asp.Withdraw: true, asp.Inform: true, asp.Query: true, asp.Observe: true, asp.Escalate: true, asp.Commit: true, asp.Close: true,
}

func nothingAfterTerminal(t *session.Turn) error {
	if t.Phase == session.Invited || afterTerminal[t.Act] || peers(&t.State).phase(&t.State, t.Now) != phaseTerminal {
		return nil
	}
	return session.Violation("terminal_rejection", "an offer was rejected for good: heard are WITHDRAW, INFORM, QUERY, OBSERVE, ESCALATE, COMMIT and CLOSE")
}

func coordinatorStaysOut(t *session.Turn) error {
	c := peers(&t.State)
	offersOrAccepts := t.Act == asp.Propose || t.Act == asp.Counter || t.Act == asp.Accept && !t.OfDelegation()
	if t.Phase == session.Invited || !c.coordinator || t.Side != c.initiator || !offersOrAccepts {
		return nil
	}
	return session.Violation("coordinator", "the initiator only coordinates here: it neither offers nor accepts")
}

func withinRounds(t *session.Turn) error {
	c := peers(&t.State)
	if t.Phase == session.Invited || t.Act != asp.Counter || c.maxRounds == 0 || c.rounds < c.maxRounds {
		return nil
	}
	return session.Violation("max_rounds", "the session has had its %d counters; ACCEPT, REJECT or WITHDRAW is left", c.maxRounds)
}

// commitsRightly hears a COMMIT of the initiator on what all accepted, or, when
// an offer was rejected for good, one that says so.
func commitsRightly(t *session.Turn) error {
	body, ok := t.Message.Body.(*asp.CommitBody)
	if !ok {
		return nil
	}
	c := peers(&t.State)
	rejects := body.Outcome == "rejected"
	switch phase := c.phase(&t.State, t.Now); {
	case t.Side != c.initiator && !slices.Contains(c.authority, t.Side):
		return session.Violation("not_initiator", "only %s commits, or who is in commitAuthority", c.initiator)
	case phase == phaseCommitted:
		return session.Violation("committed", "the session has its commitment")
	case phase == phaseNegotiating:
		return session.Violation("not_converged", "nobody can COMMIT before all have accepted the same live offer")
	case phase == phaseTerminal && !rejects:
		return session.Violation("outcome_mismatch", "an offer was rejected for good: the outcome of a COMMIT is rejected")
	case phase == phaseConverged && rejects:
		return session.Violation("outcome_mismatch", "all have accepted an offer: the outcome of a COMMIT is agreed")
	case phase == phaseConverged && body.ReferenceID != c.accepted(&t.State, t.Now):
		return session.Violation("not_accepted", "the COMMIT names %q; all have accepted %q", body.ReferenceID, c.accepted(&t.State, t.Now))
	}
	return nil
}

func nobodyAsksThemselves(t *session.Turn) error {
	if t.Act != asp.Clarify {
		return nil
	}
	return session.NotOwn(t)
}

// live tells whether an offer can still be accepted.
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

func (c convergent) phase(s *session.State, now time.Time) string {
	switch {
	case c.committed != "" || c.closed:
		return phaseCommitted
	case len(c.finalRejections(s, now)) > 0:
		return phaseTerminal
	case c.accepted(s, now) != "":
		return phaseConverged
	}
	return phaseNegotiating
}

// A finalRejection is a terminal rejection whose offer is live.
type finalRejection struct {
	Agent    asp.Agent `json:"agentId"`
	Proposal string    `json:"proposalId"`
}

func (c convergent) finalRejections(s *session.State, now time.Time) []finalRejection {
	found := []finalRejection{}
	for id, by := range c.terminal.All() {
		if live(s, id, now) {
			for _, a := range by {
				found = append(found, finalRejection{a, id})
			}
		}
	}
	slices.SortFunc(found, func(a, b finalRejection) int {
		return cmp.Or(cmp.Compare(a.Proposal, b.Proposal), cmp.Compare(a.Agent, b.Agent))
	})
	return found
}

// fillSlot: the last acceptance of a peer counts.
func fillSlot(t *session.Turn) {
	c := peers(&t.State)
	c.empty(&t.State, t.Side)
	c.vote(&t.State, t.Side, t.Offer.ID, 1)
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
	v.all += by
	if o, ok := s.Offer(id); ok && o.Side != side {
		v.byOthers += by
	}
	if side == c.initiator {
		v.initiator = by > 0
	}
	c.votes = c.votes.With(id, v)
	if c.meets(s, id, v) {
		c.meeting = c.meeting.With(id, true)
	} else {
		c.meeting = c.meeting.Without(id)
	}
}

func (c *convergent) meets(s *session.State, id string, v votes) bool {
	switch c.acceptance {
	case counterparty:
		o, ok := s.Offer(id)
		others := c.peers - 1
		if ok && c.coordinator && o.Side == c.initiator {
			others = c.peers
		}
		return v.byOthers == others
	case initiatorOnly:
		return v.initiator
	}
	return v.all == c.peers
}

// noteRejection empties the slot of who had accepted the offer, and notes a
// rejection for good.
func noteRejection(t *session.Turn) {
	c := peers(&t.State)
	if id, _ := c.slots.Get(t.Side); id == t.Offer.ID {
		c.empty(&t.State, t.Side)
	}
	if body, ok := t.Message.Body.(*asp.RejectBody); ok && body.Terminal {
		by, _ := c.terminal.Get(t.Offer.ID)
		c.terminal = c.terminal.With(t.Offer.ID, append(slices.Clip(by), t.Side))
	}
	t.Own = c
}

func retireCountered(t *session.Turn) {
	c := peers(&t.State)
	c.rounds++
	t.Own = c
	if !c.keepLive {
		t.Settle(t.Offer.ID, session.Countered)
	}
}

// emptySlots: a withdrawn offer takes its acceptances and its rejections along.
// The slots that name it stay, and no longer mean anything.
func emptySlots(t *session.Turn) {
	c := peers(&t.State)
	c.votes, c.meeting, c.terminal = c.votes.Without(t.Offer.ID), c.meeting.Without(t.Offer.ID), c.terminal.Without(t.Offer.ID)
	t.Own = c
}

// afterCommit: everybody has accepted, so a commitment needs no answers.
func afterCommit(t *session.Turn) {
	body, ok := t.Message.Body.(*asp.CommitBody)
	if !ok {
		return
	}
	c := peers(&t.State)
	c.closed = true
	if body.Outcome == "rejected" {
		t.Settle(body.CommitmentID, session.Accepted)
		t.Carry(session.Closed, "rejected")
	} else {
		c.committed = body.ReferenceID
		t.Settle(body.ReferenceID, session.Accepted)
		t.Settle(body.CommitmentID, session.Accepted)
		t.Carry(session.Executing, "")
	}
	t.Own = c
}

func awaitsPeer(s *session.State, side asp.Agent, at time.Time) bool {
	c, now := peers(s), s.Clock(at)
	switch c.phase(s, now) {
	case phaseConverged, phaseTerminal:
		return side == c.initiator || slices.Contains(c.authority, side)
	case phaseCommitted:
		return false
	}
	if c.coordinator && side == c.initiator || s.LiveOffers() == 0 {
		return false
	}
	id, filled := c.slots.Get(side)
	return !filled || !live(s, id, now)
}
