package session

import (
	"slices"
	"strings"

	"github.com/parley-asp/parley/performatives"
)

// Known are principals and what the registry knows of them; the zero Known is
// nobody. Most acts need one of them, their sender, who takes no map.
type Known struct {
	first performatives.Member
	more  map[performatives.Agent]performatives.Member
}

// Add takes a principal in, in place of what was known of it.
func (k *Known) Add(m performatives.Member) {
	if k.first.Agent == "" || k.first.Agent == m.Agent {
		k.first = m
		return
	}
	if k.more == nil {
		k.more = map[performatives.Agent]performatives.Member{}
	}
	k.more[m.Agent] = m
}

// Get finds a principal.
func (k *Known) Get(a performatives.Agent) (performatives.Member, bool) {
	if a == k.first.Agent {
		return k.first, a != ""
	}
	m, ok := k.more[a]
	return m, ok
}

// sorted are all of them, by their names.
func (k *Known) sorted() []performatives.Member {
	var all []performatives.Member
	if k.first.Agent != "" {
		all = append(all, k.first)
	}
	for _, m := range k.more {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b performatives.Member) int { return strings.Compare(string(a.Agent), string(b.Agent)) })
	return all
}
