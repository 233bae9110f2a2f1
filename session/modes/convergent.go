package modes

import (
	"cmp"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Convergent is convergent/1: peers refine offers until all accept the same
// one; then the initiator commits.
var Convergent = &session.Mode{
	Name: "convergent/1",
	Min:  2, Max: mostPeers + 1, // and a coordinator
	Open:      openConvergent,
	Rules:     []session.Rule{readableID, nothingAfterTerminal, coordinatorStaysOut, withinRounds, commitsRightly, closesRightly},
	Answering: []session.Rule{notItsOwn, session.StillOpen, session.NothingPending},
	Effects: map[asp.Performative]func(*session.Command){
		asp.Accept: fillSlot, asp.Reject: noteRejection, asp.Counter: retireCountered, asp.Withdraw: emptySlots,
	},
	After: afterCommit,
	Turn:  peersTurn,
	View:  viewConvergent,
}

const mostPeers = 1000

// Who has to accept an offer for the peers to converge on it.
const (
	allParties    = "all_parties"
	counterparty  = "counterparty" // all but the offer's author
	initiatorOnly = "initiator"
)

// Which REJECT is terminal.
const (
	terminalFlag        = "terminal_flag" // one with terminal true
	terminalOnAnyReject = "terminal_on_any_reject"
)

// What the initiator is.
const (
	rolePeer        = "peer"
	roleCoordinator = "coordinator" // it neither offers nor accepts
	roleChair       = "chair"       // it may offer and accept, and need not: its COMMIT says that it agrees
)

func openConvergent(t *session.Command, policy jsontext.Value) (any, error) {
	inviter, invited := t.Inviter(), t.Opening().Invitees
	principals := map[asp.Agent]bool{inviter: true}
	for _, a := range invited {
		principals[a] = true
	}
	p := readPolicy(policy)
	role := p.word("initiatorRole", rolePeer, "participant", roleCoordinator, roleChair)
	c := convergent{
		initiator:   inviter,
		peers:       len(principals),
		coordinator: role == roleCoordinator,
		chair:       role == roleChair,
		acceptance:  p.word("acceptance", allParties, counterparty, initiatorOnly),
		keepLive:    !p.truth("counterRetires", true),
		maxRounds:   p.number("maxRounds", 0),
		anyReject:   p.word("rejection", terminalFlag, terminalOnAnyReject) == terminalOnAnyReject,
		version:     p.text("policyVersion"),
		authority:   p.principals("commitAuthority", principals),
	}
	c.othersCommit = !p.truth("initiatorCommits", true)
	c.peersStay = !p.truth("peersClose", true)
	if c.coordinator || c.chair {
		c.peers--
	}
	p.publish()
	if err := p.judged(); err != nil {
		return nil, err
	}
	switch {
	case c.peers < 2 || c.peers > mostPeers:
		return nil, session.Violation("parties", "convergent/1 is for 2 to %d peers, besides a coordinator; here are %d", mostPeers, c.peers)
	case c.coordinator && c.acceptance == initiatorOnly:
		return nil, session.Violation("policy", "a coordinator accepts nothing, so acceptance cannot be the initiator's")
	case c.chair && (c.acceptance != allParties || len(c.authority) > 0 || c.othersCommit):
		return nil, session.Violation("policy", "a chair agrees by its COMMIT: nobody else commits, and acceptance is of all the others")
	case c.othersCommit && len(c.authority) == 0:
		return nil, session.Violation("policy", "nobody could commit: commitAuthority names nobody")
	}
	return c, nil
}

// afterTerminal are the acts that are allowed while a terminal rejection stands.
var afterTerminal = map[asp.Performative]bool{
	asp.Withdraw: true, asp.Inform: true, asp.Query: true, asp.Observe: true, asp.Escalate: true, asp.Commit: true, asp.Close: true,
}

func nothingAfterTerminal(t *session.Command) error {
	c := peers(&t.State)
	if afterTerminal[t.Act] || !c.rejected(&t.State, t.Now) {
		return nil
	}
	return session.Violation("terminal_rejection", "%q was rejected for good; allowed are WITHDRAW, INFORM, QUERY, OBSERVE, ESCALATE, COMMIT and CLOSE", c.terminal.Proposal)
}

func coordinatorStaysOut(t *session.Command) error {
	c := peers(&t.State)
	offersOrAccepts := t.Act == asp.Propose || t.Act == asp.Counter || t.Act == asp.Accept && !t.OfDelegation()
	if t.Phase == session.Invited || !c.coordinator || t.Side != c.initiator || !offersOrAccepts {
		return nil
	}
	return session.Violation("coordinator", "the initiator only coordinates here: it neither offers nor accepts")
}

func withinRounds(t *session.Command) error {
	c := peers(&t.State)
	if t.Phase == session.Invited || t.Act != asp.Counter || c.maxRounds == 0 || c.rounds < c.maxRounds {
		return nil
	}
	return session.Violation("max_rounds", "the session has had its %d counters; PROPOSE, ACCEPT, REJECT or WITHDRAW is left", c.maxRounds)
}

// commitsRightly accepts a COMMIT of the initiator on what all accepted, or, when
// an offer was rejected for good, one that says so and names no offer that is over.
func commitsRightly(t *session.Command) error {
	body, ok := t.Message.Body.(*asp.CommitBody)
	if !ok {
		return nil
	}
	c := peers(&t.State)
	rejects := body.Outcome == outcomeRejected
	if err := c.pinnedVersions(t, body); err != nil {
		return err
	}
	switch phase := c.phase(&t.State, t.Now); {
	case !c.commits(t.Side):
		return session.Violation("not_initiator", "only %s commits, or who is in commitAuthority", c.initiator)
	case phase == phaseTerminal && !rejects:
		return session.Violation("outcome_mismatch", "an offer was rejected for good: the outcome of a COMMIT is rejected")
	case phase == phaseConverged && rejects:
		return session.Violation("outcome_mismatch", "all have accepted an offer: the outcome of a COMMIT is agreed")
	case phase == phaseConverged && body.ReferenceID != c.accepted(&t.State, t.Now):
		return session.Violation("not_accepted", "the COMMIT names %q; all have accepted %q", body.ReferenceID, c.accepted(&t.State, t.Now))
	case phase == phaseTerminal && !t.Before(8) && t.Offer != nil && t.Offer.StatusAt(t.Now) != session.Open:
		return session.StillOpen(t)
	case !t.Before(2) && (phase == phaseTerminal && saysOf(body.Action) == agreed || phase == phaseConverged && saysOf(body.Action) == refused):
		return session.Violation("outcome_mismatch", "the action %q contradicts the outcome, which is %s", body.Action, cmp.Or(body.Outcome, "agreed"))
	case phase == phaseNegotiating:
		return session.Violation("not_converged", "nobody can COMMIT before one live offer, and no other, has the acceptances that it needs")
	}
	return nil
}

// closesRightly accepts a CLOSE before the COMMIT of the initiator and who may COMMIT, if the policy
// says so. While the session is ESCALATED it narrows nothing: only the humans who decide close it then.
func closesRightly(t *session.Command) error {
	c := peers(&t.State)
	if t.Act != asp.Close || t.Phase == session.Escalated || !c.peersStay || c.closed || t.Side == c.initiator || c.commits(t.Side) {
		return nil
	}
	return session.Violation("not_initiator", "before a COMMIT only %s closes the session, or who is in commitAuthority", c.initiator)
}

// commits tells who may COMMIT.
func (c convergent) commits(side asp.Agent) bool {
	return side == c.initiator && !c.othersCommit || c.authority[side]
}

// pinnedVersions refuses a COMMIT that was made for another version of the mode, or
// another policy, than the session has.
func (c convergent) pinnedVersions(t *session.Command, body *asp.CommitBody) error {
	_, version, _ := strings.Cut(t.Mode.Name, "/")
	switch {
	case body.ModeVersion != "" && body.ModeVersion != version:
		return session.Violation("version_mismatch", "the session's modeVersion is %q, not %q", version, body.ModeVersion)
	case body.PolicyVersion != "" && body.PolicyVersion != c.version:
		return session.Violation("version_mismatch", "the session's policyVersion is %q, not %q", c.version, body.PolicyVersion)
	}
	return nil
}

// What an action says of the outcome.
const (
	nothingSaid = iota
	agreed
	refused
)

var outcomeWords = map[string]int{
	"accepted": agreed, "agreed": agreed, "approved": agreed,
	"declined": refused, "denied": refused, "rejected": refused,
}

// saysOf reads the last word of a dotted action, such as contract.agreed.
func saysOf(action string) int {
	return outcomeWords[strings.ToLower(action[strings.LastIndexByte(action, '.')+1:])]
}

// readableID refuses an id in which nothing can be seen: people could not name it.
func readableID(t *session.Command) error {
	field := map[asp.Performative]string{asp.Propose: "proposalId", asp.Counter: "proposalId", asp.Commit: "commitmentId"}[t.Act]
	if field == "" || t.Before(2) || strings.ContainsFunc(t.Message.Body.ID(t.Message.ID), seen) {
		return nil
	}
	return session.RefuseSchema(session.Fault{Path: "/" + field, Rule: "blank", Message: field + " must not be blank"})
}

func seen(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }

// notItsOwn: nobody asks themselves; and authors accept their own offers, but
// explicitly: no delegate does it for them (PROTOCOL.md §6).
func notItsOwn(t *session.Command) error {
	if t.Act == asp.Clarify || t.Act == asp.Accept && t.ForAnother() {
		return session.NotOwn(t)
	}
	return nil
}

// outcomeRejected is of a COMMIT that carries a terminal rejection out.
const outcomeRejected = "rejected"

// afterCommit: everybody has accepted, so a commitment needs no answers.
func afterCommit(t *session.Command) {
	body, ok := t.Message.Body.(*asp.CommitBody)
	if !ok {
		return
	}
	c := peers(&t.State)
	c.closed = true
	t.SetStatus(body.CommitmentID, session.Accepted)
	if body.Outcome == outcomeRejected {
		t.Carry(session.Closed, outcomeRejected)
	} else {
		c.committed = body.ReferenceID
		t.SetStatus(body.ReferenceID, session.Accepted)
		t.Agree(body.ReferenceID, c.acceptors(&t.State, body.ReferenceID)...)
		t.Carry(session.Executing, "")
	}
	t.Own = c
}

// peersTurn: while no offer waits for a peer, a question about one of its own, or a query, does.
func peersTurn(s *session.State, side asp.Agent, at time.Time) (turn session.Turn, waits bool) {
	if turn, waits = convergesBy(s, side, at); waits {
		return turn, waits
	}
	if turn, waits = s.AskedAbout(side, at); waits {
		return turn, waits
	}
	return s.Queried(side)
}

// convergesBy: a peer without an acceptance of a live offer is to answer the newest; once all
// is said, whoever may commit.
func convergesBy(s *session.State, side asp.Agent, at time.Time) (turn session.Turn, waits bool) {
	c, now := peers(s), s.Clock(at)
	commits := c.commits(side)
	switch c.phase(s, now) {
	case phaseConverged:
		o, _ := s.Offer(c.accepted(s, now))
		return s.TurnOn(o, side), commits
	case phaseTerminal:
		o, _ := s.Offer(c.terminal.Proposal)
		return s.TurnOn(o, side), commits
	case phaseCommitted:
		return turn, false
	}
	newest := s.NewestLive(now)
	if c.coordinator && side == c.initiator || newest == nil {
		return turn, false
	}
	id, filled := c.slots.Get(side)
	return s.TurnOn(newest, side), !filled || !live(s, id, now)
}
