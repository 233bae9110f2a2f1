package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// allowed looks the act up in the lifecycle table.
func (t *Command) allowed() error {
	if t.Phase == Escalated {
		return t.allowedWhilePaused()
	}
	if d, passed := t.Passed(t.At); passed {
		return Refuse(WrongState, "a time has passed that the broker has not entered yet: %s", d.Code).
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
	if err := t.ofExecution(); err != nil {
		return err
	}
	return t.keepsBinding()
}

func isInvitation(b performatives.Body) bool {
	p, ok := b.(*performatives.ProposeBody)
	return ok && p.Type == performatives.SessionInvitation
}

// allowedWhilePaused allows what ends the pause, to the humans who may decide.
func (t *Command) allowedWhilePaused() error {
	if _, passed := t.Passed(t.At); !passed && t.mayEnd() {
		if _, rules := t.ruling(); rules || t.Act == performatives.Close {
			return nil
		}
	}
	open, all := t.Escalation(), t.allows()
	return Refuse(SessionEscalated, "%s", t.teaches(fmt.Sprintf("%s is not allowed while ESCALATED", t.Act), all)).
		With(map[string]any{
			"escalationId": open.ID, "organisation": open.Org, "allowed": actNames(all),
			"urgency": open.Body.Urgency, "deadline": stamp(open.Due),
		})
}

func (t *Command) wrongState(format string, args ...any) error {
	all := t.allows()
	return Refuse(WrongState, "%s", t.teaches(fmt.Sprintf(format, args...), all)).
		With(map[string]any{"state": t.Phase.String(), "allowed": actNames(all)})
}

// teaches adds to a refusal what the sender may send now, and what the session waits for
// (PROTOCOL.md §9).
func (t *Command) teaches(why string, moves []performatives.Performative) string {
	all := actNames(moves)
	for i, act := range all {
		if t.Phase == Escalated && act == performatives.Inform.String() {
			all[i] = "INFORM of type resolution"
		}
	}
	allowed := cmp.Or(strings.Join(all, ", "), "nothing")
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

// allows lists the performatives of the sender's moves, for a refusal.
func (t *Command) allows() []performatives.Performative {
	if t.draft != nil { // nobody reads the refusal of a draft
		return nil
	}
	if t.event.Allowed != nil {
		return t.event.Allowed()
	}
	e := Event{At: t.At, Route: t.event.Route}
	e.Known.Add(t.From.Member)
	return t.Acts(t.From.Agent, e, nil)
}

// answerable reports whether the state lets an open offer be answered.
func (t *Command) answerable(o *Offer) bool {
	return o.StatusAt(t.Now) == Open && (t.Phase != Agreeing || o.IsCommitment())
}

// awaits reports whether an open offer waits for a side's answer.
func (s *State) awaits(o *Offer, side performatives.Agent) bool {
	if c, ok := s.Commitment(o.Supersedes); o.Kind == anAmendment && (!ok || !slices.Contains(c.Parties, side)) {
		return false
	}
	_, said := o.acceptedBy.Get(side)
	return !said && o.Side != side && (o.To == "" || o.To == side)
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
		waits := fmt.Sprintf("the session waits for a human of %s to decide, until %s", open.Org, stamp(open.Due))
		if m, _ := t.event.Known.Get(t.From.Agent); t.From.Role == Delegate && escalation.MayDecide(m, open.Org) {
			waits += "; you hold a delegation in it, and may not decide while that lasts"
		}
		return waits
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
	case t.mode().Turn != nil:
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
