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
// addressed to, a counter retires what it replaces, questions pause.
var ASP = &session.Mode{
	Name: session.DefaultMode,
	Min:  2, Max: 1000,
	Open:       openASP,
	Rules:      []session.Rule{session.CommitmentTerms},
	Offering:   []session.Rule{session.NotRepeated},
	Answering:  []session.Rule{session.NotOwn, session.Addressed, session.StillOpen, session.NothingPending},
	Committing: []session.Rule{session.AcceptedFirst},
	Binds:      true,
}

// openASP: asp/1 has no parameters of its own.
func openASP(_ *session.Command, policy jsontext.Value) (any, error) {
	p := readPolicy(policy)
	p.publish()
	return nil, p.judged()
}
