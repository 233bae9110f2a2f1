package natskit

import (
	"sync"
	"time"
	"unsafe"
)

// A Clock tells the time that a test wants. The zero Clock is the machine's until it is moved;
// one from [StoppedClock] moves by [Clock.Advance] only.
type Clock struct {
	mu    sync.Mutex
	at    time.Time // where it stands; zero while it runs with the machine's
	ahead time.Duration
	step  time.Duration // of the wall clock alone; whole seconds
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
	return stepped(at.Add(c.ahead), c.step)
}

// StepWall sets the wall clock, back if d is negative, and leaves the monotonic one
// as it is, as an operator or NTP does. d is whole seconds.
func (c *Clock) StepWall(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step += d.Truncate(time.Second)
}

// stepped is a time with another wall reading. Package time has no way to make one:
// what it adds, it adds to both readings.
func stepped(t time.Time, d time.Duration) time.Time {
	if d == 0 || t == t.Round(0) { //nolint:staticcheck // Equal ignores the monotonic reading, which this looks for
		return t.Add(d)
	}
	want := t.Round(0).Add(d)
	// The first word of a Time with both readings: a flag, 33 bits of seconds, and
	// 30 bits of nanoseconds.
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall += uint64(int64(d/time.Second)) << 30 //nolint:gosec // two's complement is what is meant
	if !t.Round(0).Equal(want) {
		panic("package time lays out a Time in another way")
	}
	return t
}

// Advance moves the clock, back if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}
