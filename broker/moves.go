package broker

import (
	"slices"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Moves lists what an agent may send now: what Step allows, but for what this broker refuses
// besides, since nobody could decide it.
func (b *Broker) Moves(s *session.State, a performatives.Agent, at time.Time) []session.Move {
	e := session.Event{At: at, Message: &performatives.Message{Sender: a, Performative: performatives.Inform, Body: &performatives.InformBody{}}}
	if me, registered := b.parts.Registry.Member(a); registered {
		e.Known.Add(me)
	}
	b.parts.Approvals.Route(s, &e)
	side := s.SideOf(a, at)
	return slices.DeleteFunc(s.Moves(a, e), func(m session.Move) bool {
		switch {
		case m.Act == performatives.Escalate:
			return b.mayEscalate(side, s.EscalationsOf(side)+1) != nil
		case m.Act != performatives.Accept || b.o.Dev || !s.Confirms():
			return false
		case s.Phase == session.Invited:
			return !b.couldConfirm(s, side.Organisation())
		}
		o, accepts := s.Offer(m.Reference)
		return accepts && o.IsProposal() && slices.ContainsFunc(s.Sides(), func(a performatives.Agent) bool { return !b.couldConfirm(s, a.Organisation()) })
	})
}
