package modes

import (
	"cmp"
	"slices"
	"time"

	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// projection is the negotiation as MACP's proposal mode projects it.
type projection struct {
	Proposals          map[string]record    `json:"proposals"`
	Accepts            map[asp.Agent]string `json:"accepts"`
	AcceptedProposal   string               `json:"acceptedProposal,omitzero"`
	Rejections         []shownRejection     `json:"rejections"`         // not terminal, of offers that are not withdrawn, in order
	TerminalRejections []shownRejection     `json:"terminalRejections"` // those that stand
	Phase              string               `json:"phase"`
}

type record struct {
	Author      asp.Agent `json:"author"`
	Disposition string    `json:"disposition"` // live, withdrawn or expired
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
		Rejections: c.rejections(s), TerminalRejections: []shownRejection{}, Phase: c.phase(s, now),
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
		disposition := "live"
		switch status := o.StatusAt(now); status {
		case session.Open, session.Accepted:
		case session.Countered: // MACP: the original becomes withdrawn
			disposition = session.WithdrawnOffer.String()
		default:
			disposition = status.String()
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

// rejections are those that are not terminal. A peer takes its own back by accepting
// the offer.
func (c convergent) rejections(s *session.State) []shownRejection {
	var found []refusal
	for _, r := range c.refused.All() {
		if o, ok := s.Offer(r.Proposal); ok && o.Status != session.WithdrawnOffer {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b refusal) int { return cmp.Compare(a.entry, b.entry) })
	shown := make([]shownRejection, len(found))
	for i, r := range found {
		shown[i] = r.shownRejection
	}
	return shown
}
