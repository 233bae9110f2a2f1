package session

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/performatives"
)

// barred refuses an invitation that the context of a principal's card forbids: its embargo
// list, its walls, its NDAs (GATEWAYS.md G4). The lists are in no transcript, so a replay does
// not judge them again: a session that was opened was not barred. The refusal says neither
// whose context it was nor what of it.
func (t *Command) barred() error {
	if t.Act != performatives.Propose || t.Was != Idle {
		return nil
	}
	categories := t.categories()
	all := append([]performatives.Agent{t.Side}, t.opening.Invitees...)
	contexts, called := make([]*performatives.CCC, len(all)), make([][]string, len(all))
	for i, a := range all {
		m, _ := t.event.Known.Get(a)
		contexts[i], _ = performatives.ReadCCC(m.Context) // the registry checked it
		called[i] = names(a, m.DID, contexts[i])
	}
	for i, c := range contexts {
		for j := range all {
			if i != j && c.Bars(called[i], called[j], categories, t.At) {
				return Violation("ccc", "the confidentiality obligations of the parties do not allow this session")
			}
		}
	}
	return nil
}

// names are what the lists of a context may call a principal: its URI, its DIDs, that of its
// organisation, its scope.
func names(a performatives.Agent, did string, c *performatives.CCC) []string {
	all := []string{string(a), performatives.WebDID(a), "did:web:" + string(a.Organisation())}
	if did != "" {
		all = append(all, did)
	}
	if c != nil && c.Scope != "" {
		all = append(all, c.Scope)
	}
	return all
}

// categories are what the invitation says that the session is about.
func (t *Command) categories() []string {
	var policy struct {
		Categories []string `json:"categories"`
	}
	if len(t.opening.Policy) > 0 && json.Unmarshal(t.opening.Policy, &policy) != nil {
		policy.Categories = nil // no mode has such ones
	}
	if b, is := t.Message.Body.(performatives.Binder); is && b.Binds().Category != "" {
		policy.Categories = append(policy.Categories, b.Binds().Category)
	}
	return policy.Categories
}

// regulated pins what the context of a principal's card says of its profession or trade. It
// stays as it was pinned, for the session's life.
func regulated(m performatives.Member) performatives.Member {
	if c, err := performatives.ReadCCC(m.Context); err == nil && c != nil {
		m.CCC = &c.Regulation
	}
	return m
}

// Classification is the most restrictive one of the principals, which the session inherits;
// "" if no card says.
func (s *State) Classification() (most string) {
	for _, a := range s.roll {
		if c := s.Regulation(a); c != nil {
			most = performatives.MostRestrictive(most, c.Classification)
		}
	}
	return most
}

// Regulation is what was pinned of a principal's profession or trade; nil for nothing.
func (s *State) Regulation(a performatives.Agent) *performatives.Regulation {
	p, _ := s.parties.Get(a)
	if p.Role > Invitee {
		return nil
	}
	return p.CCC
}

// Obligated are the principals whose regulation the agreement has to name: those that are
// regulated, if others are not.
func (s *State) Obligated() (all []performatives.Agent) {
	free := false
	for _, a := range s.roll {
		p, _ := s.parties.Get(a)
		switch {
		case p.Role > Invitee:
		case p.CCC == nil || p.CCC.Classification == performatives.Unregulated:
			free = true
		default:
			all = append(all, a)
		}
	}
	if !free {
		return nil
	}
	return slices.Clip(all)
}
