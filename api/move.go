package api

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Move is an act that the caller may send now, with a body that is ready but for what Fill names.
type Move struct {
	Performative string              `json:"performative"`
	Reference    string              `json:"referenceId,omitzero"`
	Recipient    performatives.Agent `json:"recipient,omitzero"` // where it is not allowed without one
	Body         jsontext.Value      `json:"body"`
	Fill         []string            `json:"fill"` // dotted paths into body
	Says         string              `json:"says"`
	Limits       []MoveLimit         `json:"limits,omitzero"`
}

// A MoveLimit says what a member that is filled in can be.
type MoveLimit struct {
	Path  string           `json:"path"`
	OneOf []jsontext.Value `json:"oneOf"`
}

// completes are the accepted offers of which a CLOSE makes agreements: where nobody binds itself by COMMIT.
func completes(s *session.State) (accepted []string) {
	if !s.AcceptanceBinds() || !s.Mode.Commits || s.Phase.Over() {
		return nil
	}
	for _, o := range s.Offers() {
		switch {
		case o.IsCommitment() && o.Status <= session.Accepted:
			return nil
		case o.IsProposal() && o.Status == session.Accepted:
			accepted = append(accepted, o.ID)
		}
	}
	return accepted
}

func viewMove(m session.Move) Move {
	v := Move{Performative: m.Act.String(), Reference: m.Reference, Recipient: m.To, Body: m.Body, Fill: m.Fill}
	if v.Fill == nil {
		v.Fill = []string{}
	}
	for _, path := range m.Fill {
		if oneOf := m.OneOf[path]; len(oneOf) > 0 {
			v.Limits = append(v.Limits, MoveLimit{path, oneOf})
		}
	}
	return v
}

// madeForHosted are the members of an act in binding/1 that the broker makes for a hosted agent.
var madeForHosted = map[string]bool{"agreementSalt": true, "agreementSignature": true, "effectiveFrom": true}

// madeFor is a move without what the broker makes for a hosted party.
func (m Move) madeFor(p session.Party) Move {
	if p.Custody == performatives.Hosted {
		m.Fill = slices.DeleteFunc(slices.Clone(m.Fill), func(path string) bool { return madeForHosted[path] })
	}
	return m
}
