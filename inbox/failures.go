package inbox

import (
	"sync"
	"time"
)

const (
	// maxFailures is the number of wrong codes and signatures in a minute after which
	// sign-ins from an address are refused.
	maxFailures = 30
	// maxCounted bounds the addresses and principals that are counted at a time.
	maxCounted = 10_000
)

// failures counts failed sign-ins of the last minute by address and by principal, so
// that an attacker keeps out nobody at another address.
type failures struct {
	now func() time.Time

	mu sync.Mutex
	of map[string]*failed
}

// failed is what one address or principal has failed since a time.
type failed struct {
	times int
	since time.Time
}

func newFailures(now func() time.Time) *failures {
	return &failures{now: now, of: map[string]*failed{}}
}

// tooMany reports whether an address or a principal failed too often.
func (f *failures) tooMany(who string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.of[who]
	return c != nil && f.current(c) && c.times >= maxFailures
}

// add counts one failure, and returns how many there were in the last minute.
func (f *failures) add(who string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.of[who]
	if c == nil {
		f.makeRoom()
		c = &failed{}
		f.of[who] = c
	}
	if !f.current(c) {
		*c = failed{since: f.now()}
	}
	c.times++
	return c.times
}

func (f *failures) current(c *failed) bool { return f.now().Sub(c.since) < time.Minute }

// makeRoom forgets what is older than a minute, or else anything.
func (f *failures) makeRoom() {
	if len(f.of) < maxCounted {
		return
	}
	for who, c := range f.of {
		if !f.current(c) {
			delete(f.of, who)
		}
	}
	for who := range f.of {
		if len(f.of) < maxCounted {
			return
		}
		delete(f.of, who)
	}
}
