package session

import (
	"cmp"
	"slices"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Close, deed{refers: (*Command).leaves, happens: ended})

// ended closes the session; while it is paused, only a human who may decide
// gets this far, and the escalation ends with it.
func ended(t *Command) {
	body := t.Message.Body.(*performatives.CloseBody) //nolint:errcheck,forcetypeassert // its act says so
	if t.left(); t.owing > 0 {
		return
	}
	t.Closing = cmp.Or(body.Outcome, performatives.Completed)
	if t.Closing == performatives.Completed && t.Mode.Commits {
		t.completeTerms()
	}
	t.endItems(t.From.Agent, escalation.EndClosed)
}

// leaves judges a CLOSE. While something is due, it takes that of every party of the commitments.
func (t *Command) leaves() error {
	switch {
	case !t.executing:
		return nil
	case t.disputing > 0:
		return t.wrongState("CLOSE is not allowed while a dispute is open")
	case t.owing == 0:
		return nil
	case t.Phase == Escalated:
		return Refuse(SessionEscalated, "obligations are due: resolve the escalation, then every party may CLOSE").With(map[string]any{"owing": t.owing})
	case !t.everyParty(func(a performatives.Agent) bool { return a != t.Side }):
	default:
		return Refuse(Unauthorized, "obligations are due, and only the parties of the commitments release them; %s is none", t.Side)
	}
	if slices.Contains(t.leaving, t.Side) {
		return t.wrongState("you have said CLOSE already; while obligations are due, it takes that of every party of the commitments")
	}
	return nil
}

// everyParty reports whether something holds for every party of the commitments.
func (s *State) everyParty(holds func(performatives.Agent) bool) bool {
	for _, c := range s.carried {
		for _, a := range c.Parties {
			if !holds(a) {
				return false
			}
		}
	}
	return true
}

// left notes a CLOSE while obligations are due; once every party has said it, they are released.
func (t *Command) left() {
	if t.owing == 0 {
		return
	}
	t.leaving = append(slices.Clip(t.leaving), t.Side)
	if !t.everyParty(func(a performatives.Agent) bool { return slices.Contains(t.leaving, a) }) {
		return
	}
	for _, o := range t.Obligations() {
		if o.Ended == "" && o.Holds() {
			released := *o
			released.Ended, released.Delivery = ObligationReleased, nil
			t.setObligation(released)
		}
	}
}

// released reports whether a CLOSE ends the session: nothing is due.
func released(s *State) bool { return s.owing == 0 }
