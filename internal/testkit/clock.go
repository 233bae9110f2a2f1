package testkit

import (
	"sync"
	"time"
)

// A Clock tells the time that a test wants. The zero Clock is the machine's until it is moved;
// one from [StoppedClock] moves by [Clock.Advance] only.
type Clock struct {
	mu    sync.Mutex
	at    time.Time // where it stands; zero while it runs with the machine's
	ahead time.Duration
}

// StoppedClock is a clock that stands at a time.
func StoppedClock(at time.Time) *Clock { return &Clock{at: at} }

// Now is the time by this clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.at
	if at.IsZero() {
		at = time.Now()
	}
	return at.Add(c.ahead)
}

// Advance moves the clock, back if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}
