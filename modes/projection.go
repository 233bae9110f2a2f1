package modes

import (
	"time"

	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// projection is the negotiation as MACP's proposal mode projects it.
type projection struct {
	Proposals          map[string]record    `json:"proposals"`
	Accepts            map[asp.Agent]string `json:"accepts"`
	AcceptedProposal   string               `json:"acceptedProposal,omitzero"`
	TerminalRejections []finalRejection     `json:"terminalRejections"` // those that stand
	Phase              string               `json:"phase"`
}

type record struct {
	Author      asp.Agent `json:"author"`
	Disposition string    `json:"disposition"` // live, withdrawn, countered or expired
	Supersedes  string    `json:"supersedes,omitzero"`
}

// convergentView is what the mode adds to the view.
type convergentView struct {
	Projection projection `json:"projection"`
}

func viewConvergent(s *session.State, at time.Time) any {
	c, now := peers(s), s.Clock(at)
	p := projection{
		Proposals: map[string]record{}, Accepts: map[asp.Agent]string{},
		TerminalRejections: []finalRejection{}, Phase: c.phase(s, now),
	}
	if c.rejected(s, now) { // which outranks convergence
		p.TerminalRejections = append(p.TerminalRejections, *c.terminal)
	} else {
		p.AcceptedProposal = c.accepted(s, now)
	}
	for _, o := range s.Offers() {
		if !o.IsProposal() {
			continue
		}
		status := o.StatusAt(now)
		disposition := status.String()
		if status == session.Open || status == session.Accepted {
			disposition = "live"
		}
		p.Proposals[o.ID] = record{o.Side, disposition, o.Supersedes}
	}
	for side, id := range c.slots.All() {
		if o, ok := s.Offer(id); ok && o.Status != session.WithdrawnOffer {
			p.Accepts[side] = id
		}
	}
	return convergentView{p}
}
