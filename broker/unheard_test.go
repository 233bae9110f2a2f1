package broker

import (
	"testing"
	"time"
)

// A home that did not answer is left alone for a while, then asked by one, and no
// more left alone once it answers.
func TestUnheard(t *testing.T) {
	t.Parallel()
	var u unheard
	start := time.Now()
	for _, step := range []struct {
		after time.Duration
		do    func(time.Time)
		alone []bool // of those who want to hand on then, one after the other
	}{
		{0, func(time.Time) {}, []bool{false, false}},
		{0, func(now time.Time) { u.note("h", now) }, []bool{true, true}},
		{unheardFor, func(time.Time) {}, []bool{true}},
		{unheardFor + 1, func(time.Time) {}, []bool{false, true}},
		{unheardFor + 2, func(time.Time) { u.heard("h") }, []bool{false, false}},
		{unheardFor + 3, func(now time.Time) { u.note("h", now) }, []bool{true}},
		{3*unheardFor + 4, func(now time.Time) { u.note("other", now) }, []bool{false, false}},
	} {
		now := start.Add(step.after)
		step.do(now)
		for i, want := range step.alone {
			if got := u.still("h", now); got != want {
				t.Errorf("%s, asked %d: left alone %t, want %t", step.after, i, got, want)
			}
		}
	}
}
