package natsgateway

import (
	"maps"
	"sync"
	"time"
)

// breaker is a circuit breaker for each owner that did not answer, or not where it should,
// though its record is fresh: the link between two servers may be cut while both reach the
// third. While it is open for an owner that did not answer, acts for it are judged here with
// an indeterminate result, since the owner may have received them before.
type breaker struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// breakerOpen is how long a breaker stays open. Then one act tries the usual way.
const breakerOpen = 10 * time.Second

// trip opens the breaker of an owner that did not answer.
func (b *breaker) trip(owner string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until == nil {
		b.until = map[string]time.Time{}
	}
	maps.DeleteFunc(b.until, func(_ string, until time.Time) bool { return now.Sub(until) > breakerOpen }) // of brokers that are gone
	b.until[owner] = now.Add(breakerOpen)
}

// reset closes the breaker of an owner that answered.
func (b *breaker) reset(owner string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.until, owner)
}

// open reports whether the breaker is open. Whoever first learns that it is not any more
// probes for all others.
func (b *breaker) open(owner string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	until, tripped := b.until[owner]
	if tripped && now.After(until) {
		b.until[owner] = now.Add(breakerOpen)
		return false
	}
	return tripped
}

// tripped reports whether the breaker was tripped lately. Nobody probes.
func (b *breaker) tripped(owner string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(b.until[owner])
}
