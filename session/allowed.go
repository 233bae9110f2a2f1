package session

import (
	"fmt"
	"strings"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
)

// allowed looks the act up in the lifecycle table.
func (t *Command) allowed() error {
	if t.Phase == Escalated {
		return t.allowedWhilePaused()
	}
	if d, passed := t.Ending(t.At); passed {
		return Refuse(WrongState, "the session's time is over: %s", d.Code).
			With(map[string]any{"state": t.Phase.String(), "allowed": []string{}})
	}
	switch {
	case t.about != nil:
		if !ofDelegation[t.Phase] {
			return t.wrongState("%s of a delegation is not allowed while %s", t.Act, t.Phase)
		}
	case t.question != nil && t.Act == performatives.Withdraw:
		if !ofQuestion[t.Phase] {
			return t.wrongState("WITHDRAW of a clarification is not allowed while %s", t.Phase)
		}
	case !t.Phase.Allows(t.Act):
		return t.wrongState("%s is not allowed while %s", t.Act, t.Phase)
	case t.Phase == Agreeing && t.Offer != nil && t.Offer.IsProposal() && lifecycle[Agreeing][t.Act].kind == byCommitments:
		return t.wrongState("%s while AGREEING is of a commitment; %q is a proposal", t.Act, t.Offer.ID)
	case t.Phase == Invited && t.Act == performatives.Counter && t.principals > 2:
		return t.wrongState("COUNTER of an invitation is allowed with one invitee only, and there are %d", t.principals-1)
	case t.Phase != Idle && isInvitation(t.Message.Body):
		return t.wrongState("the session is open already; a session-invitation opens a new one")
	}
	return t.keepsBinding()
}

func isInvitation(b performatives.Body) bool {
	p, ok := b.(*performatives.ProposeBody)
	return ok && p.Type == performatives.SessionInvitation
}

// allowedWhilePaused allows what ends the pause, to the humans who may decide.
func (t *Command) allowedWhilePaused() error {
	if _, over := t.Ending(t.At); !over && t.mayEnd() {
		if _, rules := t.ruling(); rules || t.Act == performatives.Close {
			return nil
		}
	}
	open := t.Escalation()
	return Refuse(SessionEscalated, "%s", t.teaches(fmt.Sprintf("%s is not allowed while ESCALATED", t.Act))).
		With(map[string]any{
			"escalationId": open.ID, "organisation": open.Org, "allowed": actNames(t.allows()),
			"urgency": open.Body.Urgency, "deadline": stamp(open.Due),
		})
}

func (t *Command) wrongState(format string, args ...any) error {
	return Refuse(WrongState, "%s", t.teaches(fmt.Sprintf(format, args...))).
		With(map[string]any{"state": t.Phase.String(), "allowed": actNames(t.allows())})
}

// teaches adds to a refusal what the sender may send now, and what the session waits for
// (PROTOCOL.md §9).
func (t *Command) teaches(why string) string {
	allowed := strings.Join(actNames(t.allows()), ", ")
	switch {
	case allowed == "":
		allowed = "nothing"
	case t.Phase == Escalated:
		allowed = "INFORM of type resolution, CLOSE"
	}
	why += ". Allowed for you: " + allowed
	if waits := t.waits(); waits != "" {
		why += "; " + waits
	}
	return why + "."
}

func actNames(acts []performatives.Performative) []string {
	all := make([]string, 0, len(acts))
	for _, a := range acts {
		all = append(all, a.String())
	}
	return all
}

// allows lists the acts that the state allows to the sender's role, and that have something
// to answer or take back. A mode, a grant's limits or a ruling may still refuse one of them.
func (t *Command) allows() []performatives.Performative {
	var all []performatives.Performative
	answers, withdraws := t.mayAnswer(), t.mayWithdraw()
	offered := t.From.Role == Delegate && ofDelegation[t.Phase] && (t.Grant == nil || t.Grant.Status == delegation.Offered)
	for _, act := range performatives.All() {
		ok := t.Phase.Allows(act) && t.roleAllows(act)
		switch act {
		case performatives.Accept, performatives.Reject:
			ok = ok && answers || offered
		case performatives.Counter:
			ok = ok && answers && (t.Phase != Invited || t.principals == 2)
		case performatives.Clarify:
			ok = ok && (answers || t.Phase == Agreeing || t.Phase == Executing)
		case performatives.Withdraw:
			ok = withdraws
		default:
		}
		if ok {
			all = append(all, act)
		}
	}
	return all
}

// roleAllows reports whether the sender's role allows the act.
func (t *Command) roleAllows(act performatives.Performative) bool {
	if t.Phase == Escalated {
		return t.mayEnd()
	}
	switch t.From.Role {
	case Approver:
		return approverActs[act]
	case Delegate:
		return t.Grant != nil && t.Grant.Authority.Allows(act) && delegation.Standing(*t.Grant, t.Now, t.grants.Get) == nil
	case Standby:
		turn, waits := t.turnOf(t.Side, t.At)
		return waits && t.parked(turn, t.At) && standbyActs[act]
	default:
		return !t.From.minimal() || t.Before(2) || minimalActs[act] || t.Phase == Invited && act != performatives.Counter
	}
}

// mayAnswer reports whether an offer may wait for the sender's side: whose answer a proposal
// takes is its mode's to say.
func (t *Command) mayAnswer() bool {
	if t.Phase == Conversing {
		return true
	}
	for _, o := range t.live.All() {
		if t.answerable(o) && t.awaits(o, t.Side) {
			return true
		}
	}
	return false
}

// answerable reports whether the state lets an open offer be answered.
func (t *Command) answerable(o *Offer) bool {
	return o.StatusAt(t.Now) == Open && (t.Phase != Agreeing || o.IsCommitment())
}

// awaits reports whether an open offer waits for a side's answer.
func (s *State) awaits(o *Offer, side performatives.Agent) bool {
	_, said := o.acceptedBy.Get(side)
	return !said && o.Side != side && (o.To == "" || o.To == side)
}

// mayWithdraw reports whether the sender has something to take back: an offer, a question
// or a delegation.
func (t *Command) mayWithdraw() bool {
	if t.Phase.Allows(performatives.Withdraw) && t.roleAllows(performatives.Withdraw) {
		for _, o := range t.live.All() {
			if t.answerable(o) && o.Side == t.Side {
				return true
			}
		}
	}
	if ofQuestion[t.Phase] && t.From.Role <= Invitee {
		for id := range t.asking.All() {
			if q, ok := t.questions.Get(id); ok && q.By == t.Side {
				return true
			}
		}
	}
	if !ofDelegation[t.Phase] {
		return false
	}
	for _, g := range t.grants.All() {
		if me := t.From.Agent; g.Status <= delegation.Active && (g.From == me || g.To == me || g.Principal == me) {
			return true
		}
	}
	return false
}

// waits says what the session waits for and from whom; "" where nobody's word is awaited.
func (t *Command) waits() string {
	switch {
	case t.Phase.Over() && t.Closing == "":
		return "the session is over"
	case t.Phase.Over():
		return "the session is over: " + t.Closing
	case t.Phase == Escalated:
		open := t.Escalation()
		return fmt.Sprintf("the session waits for a human of %s to decide, until %s", open.Org, stamp(open.Due))
	case t.Phase == Invited:
		acts := "ACCEPT or REJECT"
		if t.principals == 2 {
			acts = "ACCEPT, REJECT or COUNTER"
		}
		return t.waitsFor(t.invitation, "invitation", acts)
	case t.Phase == Agreeing:
		var first *Offer
		for _, o := range t.live.All() {
			if t.answerable(o) && (first == nil || o.Sequence < first.Sequence) {
				first = o
			}
		}
		if first != nil {
			return t.waitsFor(first, fmt.Sprintf("commitment %q", first.ID), "ACCEPT or REJECT")
		}
	case t.Mode.Turn != nil:
		switch sides := t.sides(func(a performatives.Agent) bool { _, waits := t.turnOf(a, t.At); return waits }); sides {
		case "":
		case you:
			return "it is your turn"
		default:
			return "it is the turn of " + sides
		}
	}
	return ""
}

func (t *Command) waitsFor(o *Offer, what, acts string) string {
	whose, by := fmt.Sprintf("the %s of %s", what, o.Side), t.sides(func(a performatives.Agent) bool { return t.awaits(o, a) })
	if o.Side == t.From.Agent {
		whose = "your " + what
	}
	if by == you {
		return fmt.Sprintf("%s waits for your %s", whose, acts)
	}
	return fmt.Sprintf("%s waits for %s of %s", whose, acts, by)
}

const (
	you       = "you"
	mostNamed = 3 // principals in a sentence
)

// sides names the principals who are wanted.
func (t *Command) sides(wanted func(performatives.Agent) bool) string {
	var named []string
	more := 0
	for _, a := range t.Participants() {
		if p, _ := t.parties.Get(a); p.Role > Invitee || !wanted(a) {
			continue
		}
		switch {
		case len(named) == mostNamed:
			more++
		case a == t.From.Agent:
			named = append(named, you)
		default:
			named = append(named, string(a))
		}
	}
	if more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	last := len(named) - 1
	if last < 1 {
		return strings.Join(named, "")
	}
	return strings.Join(named[:last], ", ") + " and " + named[last]
}
