package session

import (
	"time"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
)

// Awaits tells whether the session waits for an answer of this party: an
// invitation, an open offer or commitment addressed to its side, a question
// about its own offer, a delegation, or an escalation.
func (s *State) Awaits(you performatives.Agent, at time.Time) bool {
	p, ok := s.parties.Get(you)
	if !ok || s.Phase.Over() {
		return false
	}
	if s.Phase == Escalated {
		return s.open.Asks(p.Member, at)
	}
	side := you
	g := s.grantOf(p, s.clock(at))
	if g.ID != "" && g.Status == delegation.Offered {
		return true
	}
	if p.Role == Delegate {
		if g.Status != delegation.Active || g.Authority != delegation.Full {
			return false
		}
		side = g.Principal
	}
	if p.Role == Approver {
		return false
	}
	if s.Mode.Awaits != nil && s.Phase >= Introduced {
		return s.Mode.Awaits(s, side, at)
	}
	return s.awaitsAnswer(side, at)
}

func (s *State) awaitsAnswer(side performatives.Agent, at time.Time) bool {
	now := s.clock(at)
	for _, o := range s.live.All() {
		if o.StatusAt(now) != Open {
			continue
		}
		asked := len(s.OpenFields(o)) > 0
		_, said := o.acceptedBy.Get(side)
		if o.Side == side && asked || o.Side != side && !asked && !said && (o.To == "" || o.To == side) {
			return true
		}
	}
	return false
}
