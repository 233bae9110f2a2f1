package limits

import (
	"slices"
	"strings"
	"time"
)

// A Hit is who exceeded which limit, how often, and when last.
type Hit struct {
	Who, Limit string
	At         time.Time
	Times      uint64
}

// mostHits are kept: the newest.
const mostHits = 100

// Hits are the newest of who exceeded which limit, the last first.
func (s *Accounts) Hits() []Hit {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.hits)
	slices.Reverse(all)
	return all
}

// What the names of limits begin with that are not a principal's own.
const (
	organisationPrefix = "organisation"
	addressLimitPrefix = "address"
	pairLimitPrefix    = "pair"
)

// limit names a limit.
func (a *account) limit(u Unit) string {
	name := units[u].name
	if a.kind.prefix != "" {
		name = a.kind.prefix + strings.ToUpper(name[:1]) + name[1:]
	}
	return name
}

// OnRefusal has a function called with the limit of each refusal. It comes before the first one, and
// must not ask accounts for anything.
func (s *Accounts) OnRefusal(do func(limit string)) { s.refused = do }

// Names are those of all limits of accounts.
func Names() (all []string) {
	for _, prefix := range []string{"", organisationPrefix, addressLimitPrefix, pairLimitPrefix} {
		one := account{kind: &kind{prefix: prefix}}
		for u := range units {
			all = append(all, one.limit(Unit(u)))
		}
	}
	return all
}
