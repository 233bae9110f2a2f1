// Package modes holds the ways to hold a session: values made of small rules,
// picked by the invitation's terms.mode and pinned for the session's life. A
// new mode is one new file and its transcripts.
//
// A mode never allows what the lifecycle table does not: its rules refuse more,
// and it may carry a session further forward (PROTOCOL.md §8).
package modes

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/session"
)

// All are the modes that an invitation may pick.
func All() session.Modes {
	all := session.Modes{}
	for _, m := range []*session.Mode{ASP, Bilateral, Convergent, Binding} {
		all[m.Name] = m
	}
	return all
}

// ASP is asp/1, the default: offers are answered by the side that they are
// addressed to, a counter retires what it replaces and a proposal what is open in its thread,
// questions pause.
var ASP = &session.Mode{
	Name: session.DefaultMode,
	Min:  2, Max: 1000,
	Open:       openASP,
	Rules:      []session.Rule{session.CommitmentTerms},
	Offering:   []session.Rule{session.NotRepeated},
	Answering:  []session.Rule{session.NotOwn, session.Addressed, session.StillOpen, session.NothingPending},
	Committing: []session.Rule{session.AcceptedFirst},
	Retires:    func(s *session.State) bool { return s.Own != alternatives(true) },
	Binds:      1,
	Commits:    true,
}

// alternatives says that offers of one type and subject stand side by side.
type alternatives bool

func openASP(_ *session.Command, policy jsontext.Value) (any, error) {
	p := readPolicy(policy)
	p.publish()
	own := alternatives(p.truth("alternatives", false))
	return own, p.judged()
}
