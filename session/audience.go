package session

import (
	"iter"
	"slices"
	"time"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// Audience is who receives the last entry: every principal, every delegate who
// has joined and whose authority stands, every human who may decide here, and
// the delegate that the entry is about; never its sender (PROTOCOL.md §2, §6), nor a
// Minimal agent that does not know the act.
func (s *State) Audience() []performatives.Agent {
	to := make([]performatives.Agent, 0, len(s.order))
	for _, a := range s.order {
		if p, _ := s.parties.Get(a); a != s.Last.sender && p.Role != Standby && (s.Last.simple || !p.minimal()) && (p.Role != Delegate || s.mayAct(p, s.Last.now)) {
			to = append(to, a)
		}
	}
	for _, a := range s.Last.also {
		if a != s.Last.sender && !slices.Contains(to, a) {
			to = append(to, a)
		}
	}
	return to
}

// mayAct reports whether a delegate has joined and may still act.
func (s *State) mayAct(p Party, now time.Time) bool {
	g, ok := s.grants.Get(p.Grant)
	return ok && g.Status == delegation.Active && delegation.Standing(g, now, s.grants.Get) == nil
}

// idle reports whether somebody is here only by a delegation that was not
// accepted or has ended.
func (t *Command) idle(p Party) bool { return p.Role == Delegate && !t.mayAct(p, t.Now) }

// Delegated reports whether somebody holds a delegation that it has accepted, and decides nothing while that lasts.
func (s *State) Delegated(a performatives.Agent, at time.Time) bool {
	p, has := s.hasPart(a)
	return has && p.Role == Delegate && s.mayAct(p, s.clock(at))
}

// delegates are the delegates who receive the entries.
func (t *Command) delegates() []performatives.Agent {
	var to []performatives.Agent
	for _, a := range t.order {
		if p, _ := t.parties.Get(a); p.Role == Delegate && t.mayAct(p, t.Now) {
			to = append(to, a)
		}
	}
	return to
}

// HasPart reports whether somebody has a part in the session; a delegate who
// declined has none.
func (s *State) HasPart(a performatives.Agent) bool {
	_, has := s.hasPart(a)
	return has
}

// Decides reports whether a principal is a human who may decide for an
// organisation that has escalated here, and so has a part in the session, also
// before its first act.
func (s *State) Decides(m performatives.Member) bool {
	_, escalated := s.deciders.Get(m.Agent.Organisation())
	return escalated && escalation.MayDecide(m, m.Agent.Organisation())
}

// Asks reports whether a human may decide an escalation of the session, also one who has not acted and so
// is no participant to the other sides. It receives the entries.
func (s *State) Asks(m performatives.Member) bool {
	if s.Policy.Format < 5 || m.Agent == s.Last.sender || !s.Decides(m) {
		return false
	}
	for _, item := range s.items.All() {
		if item.Names(m) {
			return true
		}
	}
	return false
}

// Deciding are the organisations that have escalated.
func (s *State) Deciding() iter.Seq[performatives.Organisation] {
	return func(yield func(performatives.Organisation) bool) {
		for org := range s.deciders.All() {
			if !yield(org) {
				return
			}
		}
	}
}

// MayRead reports whether the principal may read the session, from its first
// entry: whoever has a part, but a delegate only once it joined and while its
// authority stands.
func (s *State) MayRead(a performatives.Agent, at time.Time) bool {
	p, ok := s.parties.Get(a)
	return ok && (p.Role != Delegate || s.mayAct(p, s.clock(at)))
}
