package natsgateway

import (
	"testing"
	"time"
)

// A home that did not answer is left alone for a while, then asked by one, and no
// more left alone once it answers.
func TestBreaker(t *testing.T) {
	t.Parallel()
	var b breaker
	start := time.Now()
	for _, step := range []struct {
		after time.Duration
		do    func(time.Time)
		alone []bool // of those who want to forward then, one after the other
	}{
		{0, func(time.Time) {}, []bool{false, false}},
		{0, func(now time.Time) { b.trip("h", now) }, []bool{true, true}},
		{breakerOpen, func(time.Time) {}, []bool{true}},
		{breakerOpen + 1, func(time.Time) {}, []bool{false, true}},
		{breakerOpen + 2, func(time.Time) { b.reset("h") }, []bool{false, false}},
		{breakerOpen + 3, func(now time.Time) { b.trip("h", now) }, []bool{true}},
		{3*breakerOpen + 4, func(now time.Time) { b.trip("other", now) }, []bool{false, false}},
	} {
		now := start.Add(step.after)
		step.do(now)
		for i, want := range step.alone {
			if got := b.open("h", now); got != want {
				t.Errorf("%s, asked %d: left alone %t, want %t", step.after, i, got, want)
			}
		}
	}
}
