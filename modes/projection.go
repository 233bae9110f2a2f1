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

func viewConvergent(s *session.State, at time.Time, v *session.View) {
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
	for _, o := range v.Proposals {
		disposition := o.Status
		if o.Status == session.Open.String() || o.Status == session.Accepted.String() {
			disposition = "live"
		}
		p.Proposals[o.Proposal] = record{o.From, disposition, o.Supersedes}
	}
	for side, id := range c.slots.All() {
		if o, ok := s.Offer(id); ok && o.Status != session.WithdrawnOffer {
			p.Accepts[side] = id
		}
	}
	v.Projection = p
}
