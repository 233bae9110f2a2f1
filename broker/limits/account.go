package limits

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A Unit is what an account counts.
type Unit int

// Units that are spent come back with time; those that are held are given back.
const (
	Requests Unit = iota
	BytesIn
	BytesOut
	CPU // seconds
	Items

	InFlight
	Buffered
	Streams

	all   = Streams + 1
	spent = InFlight // how many of them are spent
)

// units name them in refusals.
var units = [all]struct {
	name, what string
	again      time.Duration // when to ask again for what is held
}{
	Requests: {name: "rate", what: "requests"},
	BytesIn:  {name: "bytes", what: "bytes that are sent"},
	BytesOut: {name: "bytesOut", what: "bytes of answers"},
	CPU:      {name: "cpu", what: "seconds of work"},
	Items:    {name: "items", what: "copies for the inboxes of others"},
	InFlight: {name: "inFlight", what: "requests that wait for their answers", again: 50 * time.Millisecond},
	Buffered: {name: "buffered", what: "bytes of answers that wait to be sent", again: 50 * time.Millisecond},
	Streams:  {name: "streams", what: "open streams", again: time.Second},
}

// A quota is how much there is of a unit, and how much of it comes back in a second.
type quota struct{ most, perSecond float64 }

// A kind is whose an account is.
type kind struct {
	prefix string // of its names in refusals
	whose  string
	quotas [all]quota
}

// Accounts are those of all who ask a broker. Nil has none, and bounds nothing.
type Accounts struct {
	principal, organisation, address, pair kind

	now   func() time.Time
	cores float64
	busy  atomic.Int32 // slots that are held, of all schedulers

	largeRead, largeJudged *Scheduler // of work on large requests

	mu        sync.Mutex
	open      map[string]*account // by what it is opened for
	addresses int
	sweepAt   int // look for idle ones when there are so many
	hits      []Hit

	refused func(limit string)
}

// An account is what one principal, organisation, address or pair of organisations uses.
type account struct {
	kind     *kind
	of       *account // the organisation's, for a principal
	members  int      // of an organisation
	refilled time.Time
	amounts  [all]float64 // what is left of what is spent, and what is held
}

const (
	fewAccounts  = 1024   // are kept without a look at which of them are idle
	maxAddresses = 10_000 // that are remembered
)

// NewAccounts opens accounts with the quotas of limits with their defaults, by a clock.
func NewAccounts(l Limits, now func() time.Time) *Accounts {
	s := &Accounts{
		principal:    kind{whose: "you", quotas: l.principal()},
		organisation: kind{prefix: organisationPrefix, whose: "the principals of your organisation together", quotas: l.organisation()},
		address:      kind{prefix: addressLimitPrefix, whose: "your address", quotas: l.address()},
		pair:         kind{prefix: pairLimitPrefix, whose: "your organisation with any other one", quotas: l.pair()},
		now:          now, cores: float64(runtime.GOMAXPROCS(0)), open: map[string]*account{}, sweepAt: fewAccounts,
	}
	half := max(1, runtime.GOMAXPROCS(0)/2)
	s.largeRead, s.largeJudged = s.Scheduler(half, 0), s.Scheduler(half, 0)
	return s
}

// SetLimits has other quotas from now on, limits with their defaults. What is spent and held stays so.
func (s *Accounts) SetLimits(l Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.principal.quotas, s.organisation.quotas, s.address.quotas, s.pair.quotas = l.principal(), l.organisation(), l.address(), l.pair()
}

// An Account is charged for what is done for its owner. The zero Account bounds nothing.
type Account struct {
	accounts *Accounts
	owner    string
}

// What the owner of an account begins with that is an address or a pair, and no URI of a principal.
const (
	addressPrefix = "address "
	pairPrefix    = "pair "
)

// Of is a principal's account, which is its organisation's, too. An operator has none.
func (s *Accounts) Of(a performatives.Agent) Account {
	if s == nil || a == "" {
		return Account{}
	}
	return Account{s, string(a)}
}

// At is the account of an address from which somebody asks who is not known.
func (s *Accounts) At(address string) Account {
	if s == nil {
		return Account{}
	}
	return Account{s, addressPrefix + address}
}

// Between is the account of what an organisation puts into the inboxes of another one.
func (s *Accounts) Between(by, to performatives.Organisation) Account {
	if s == nil {
		return Account{}
	}
	return Account{s, pairPrefix + string(by) + " " + string(to)}
}

// Owner is whom a scheduler charges to the account.
func (a Account) Owner() performatives.Agent { return performatives.Agent(a.owner) }

// Admit spends requests, and the bytes that they have, or refuses them. Whoever owes
// anything of what is spent afterwards is refused too, of no requests as well.
func (a Account) Admit(requests, bytes int) error {
	if a.accounts == nil {
		return nil
	}
	needs := [spent]float64{Requests: float64(requests), BytesIn: float64(bytes)}
	now := a.accounts.now()
	a.accounts.mu.Lock()
	defer a.accounts.mu.Unlock()
	mine := a.accounts.find(a.owner, now)
	for one := mine; one != nil; one = one.of {
		one.refill(now)
		for u, need := range needs {
			if one.amounts[u] < min(need, one.kind.quotas[u].most) {
				return a.refuse(one, Unit(u), need)
			}
		}
	}
	for one := mine; one != nil; one = one.of {
		for u, need := range needs {
			one.spend(Unit(u), need)
		}
	}
	return nil
}

// Spend charges what is known only afterwards. At most a minute's quota is owed.
func (a Account) Spend(u Unit, n float64) {
	if a.accounts == nil || n <= 0 {
		return
	}
	now := a.accounts.now()
	a.accounts.mu.Lock()
	defer a.accounts.mu.Unlock()
	for one := a.accounts.find(a.owner, now); one != nil; one = one.of {
		one.refill(now)
		one.spend(u, n)
	}
}

// Hold holds so much until it is released, or refuses it.
func (a Account) Hold(u Unit, n float64) (release func(), err error) {
	if a.accounts == nil {
		return func() {}, nil
	}
	a.accounts.mu.Lock()
	defer a.accounts.mu.Unlock()
	mine := a.accounts.find(a.owner, a.accounts.now())
	for one := mine; one != nil; one = one.of {
		if one.amounts[u]+n > one.kind.quotas[u].most {
			return nil, a.refuse(one, u, n)
		}
	}
	return a.accounts.hold(mine, u, n), nil
}

// Keep holds until it is released what is there already, beyond the quota too.
func (a Account) Keep(u Unit, n float64) (release func()) {
	if a.accounts == nil {
		return func() {}
	}
	a.accounts.mu.Lock()
	defer a.accounts.mu.Unlock()
	return a.accounts.hold(a.accounts.find(a.owner, a.accounts.now()), u, n)
}

func (s *Accounts) hold(mine *account, u Unit, n float64) (release func()) {
	for one := mine; one != nil; one = one.of {
		one.amounts[u] += n
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for one := mine; one != nil; one = one.of {
			one.amounts[u] -= n
		}
	})
}

// refuse notes who exceeded which limit; under mu.
func (a Account) refuse(one *account, u Unit, need float64) error {
	hit := Hit{Who: a.owner, Limit: one.limit(u), Times: 1}
	s := a.accounts
	if n := slices.IndexFunc(s.hits, func(h Hit) bool { return h.Who == hit.Who && h.Limit == hit.Limit }); n >= 0 {
		hit.Times += s.hits[n].Times
		s.hits = slices.Delete(s.hits, n, n+1)
	} else if len(s.hits) == mostHits {
		s.hits = slices.Delete(s.hits, 0, 1)
	}
	hit.At = s.now()
	s.hits = append(s.hits, hit)
	if s.refused != nil {
		s.refused(hit.Limit)
	}
	return one.refuse(u, need)
}

// refill gives back what has come back since the last time.
func (a *account) refill(now time.Time) {
	passed := now.Sub(a.refilled).Seconds()
	if passed <= 0 {
		return
	}
	a.refilled = now
	for u, q := range a.kind.quotas[:spent] {
		a.amounts[u] = min(q.most, a.amounts[u]+passed*q.perSecond)
	}
}

func (a *account) spend(u Unit, n float64) {
	a.amounts[u] = max(a.amounts[u]-n, -a.kind.quotas[u].most)
}

// refuse is the one place that says which limit is exceeded, and when to ask again.
func (a *account) refuse(u Unit, need float64) error {
	name, q, unit := a.limit(u), a.kind.quotas[u], units[u]
	if u >= spent {
		return api.RateLimited(name, unit.again, "no more than %.0f %s at a time for %s", q.most, unit.what, a.kind.whose)
	}
	left := a.amounts[u]
	seconds := (min(need, q.most) - left) / q.perSecond
	wait := time.Duration(min(seconds*float64(time.Second), math.MaxInt64/2)) + time.Millisecond
	switch u {
	case Requests:
		return api.RateLimited(name, wait, "no more than %g %s a second for %s, or %.0f at once after a pause", q.perSecond, unit.what, a.kind.whose, q.most)
	case BytesIn, BytesOut:
		takes := fmt.Sprintf("this takes %.0f", need)
		if left < 0 {
			takes = fmt.Sprintf("%.0f more were used", -left)
		}
		return api.BytesLimited(name, wait, int(q.most), max(0, int(left)), "no more than %.0f %s a minute for %s, and %s", q.most, unit.what, a.kind.whose, takes)
	default:
		return api.RateLimited(name, wait, "no more than %g %s a minute for %s", q.most, unit.what, a.kind.whose)
	}
}

// find finds or opens an account; under mu.
func (s *Accounts) find(owner string, now time.Time) *account {
	if found := s.open[owner]; found != nil {
		return found
	}
	_, anonymous := strings.CutPrefix(owner, addressPrefix)
	s.sweep(now, anonymous)
	if anonymous {
		s.addresses++
		return s.enter(owner, &s.address, now)
	}
	if strings.HasPrefix(owner, pairPrefix) {
		return s.enter(owner, &s.pair, now)
	}
	made := s.enter(owner, &s.principal, now)
	organisation := "organisation " + string(performatives.Agent(owner).Organisation())
	if made.of = s.open[organisation]; made.of == nil {
		made.of = s.enter(organisation, &s.organisation, now)
	}
	made.of.members++
	return made
}

func (s *Accounts) enter(owner string, k *kind, now time.Time) *account {
	made := &account{kind: k, refilled: now}
	for u, q := range k.quotas[:spent] {
		made.amounts[u] = q.most
	}
	s.open[owner] = made
	return made
}

// sweep closes the accounts that are as good as new, and if there are too many addresses
// all of them that hold nothing.
func (s *Accounts) sweep(now time.Time, anonymous bool) {
	tooMany := anonymous && s.addresses >= maxAddresses
	if len(s.open) < s.sweepAt && !tooMany {
		return
	}
	maps.DeleteFunc(s.open, func(owner string, a *account) bool {
		_, anonymous := strings.CutPrefix(owner, addressPrefix)
		closed := a.members == 0 && (a.idle(now) || anonymous && tooMany && a.holdsNothing())
		switch {
		case closed && anonymous:
			s.addresses--
		case closed && a.of != nil:
			a.of.members--
		}
		return closed
	})
	s.sweepAt = max(fewAccounts, 2*len(s.open))
}

func (a *account) idle(now time.Time) bool {
	a.refill(now)
	for u, q := range a.kind.quotas[:spent] {
		if a.amounts[u] < q.most {
			return false
		}
	}
	return a.holdsNothing()
}

func (a *account) holdsNothing() bool {
	for _, held := range a.amounts[spent:] {
		if held > 0 {
			return false
		}
	}
	return true
}
