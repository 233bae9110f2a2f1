package broker

import (
	"slices"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Moves lists what an agent may send now: what Step allows, but for what this broker refuses
// besides.
func (b *Broker) Moves(s *session.State, a performatives.Agent, at time.Time) []session.Move {
	return slices.DeleteFunc(s.Moves(a, b.asks(s, a, at)), b.refuses(s, a, at))
}

// allowed lists the performatives of the moves.
func (b *Broker) allowed(s *session.State, a performatives.Agent, at time.Time) []performatives.Performative {
	return s.Acts(a, b.asks(s, a, at), b.refuses(s, a, at))
}

// asks is the event by which an agent's moves are judged.
func (b *Broker) asks(s *session.State, a performatives.Agent, at time.Time) session.Event {
	e := session.Event{At: at, Route: b.parts.Approvals.Transferred(s, a)}
	if me, registered := b.parts.Registry.Member(a); registered {
		e.Known.Add(me)
	}
	return e
}

// refuses reports of a move whether nobody could decide what it asks for.
func (b *Broker) refuses(s *session.State, a performatives.Agent, at time.Time) func(session.Move) bool {
	side := s.SideOf(a, at)
	return func(m session.Move) bool {
		if o, delivered := s.Delivered(m.Reference); delivered && m.Act == performatives.Accept && !b.o.Dev {
			return !b.couldConfirm(s, side.Organisation(), at) && b.parts.Approvals.ToAccept(s, o, side, a, at) != nil
		}
		switch {
		case m.Act == performatives.Escalate:
			return b.mayEscalate(s, side, s.EscalationsOf(side)+1, at) != nil
		case m.Act != performatives.Accept || b.o.Dev || !s.Confirms():
			return false
		case s.Phase == session.Invited:
			return !b.couldConfirm(s, side.Organisation(), at)
		}
		o, accepts := s.Offer(m.Reference)
		return accepts && o.IsProposal() && slices.ContainsFunc(s.Sides(), func(a performatives.Agent) bool { return !b.couldConfirm(s, a.Organisation(), at) })
	}
}
