package main

import (
	"runtime/debug"
	"testing"
)

// The collector's percent is the broker's own unless the environment says something of memory.
func TestCollectLess(t *testing.T) {
	for _, c := range []struct {
		gogc, limit string
		want        int
	}{
		{"", "", gcPercent},
		{"50", "", 70},
		{"", "1GiB", 70},
		{"off", "1GiB", 70},
	} {
		t.Setenv("GOGC", c.gogc)
		t.Setenv("GOMEMLIMIT", c.limit)
		before := debug.SetGCPercent(70)
		collectLess()
		if got := debug.SetGCPercent(before); got != c.want {
			t.Errorf("GOGC=%q GOMEMLIMIT=%q: %d %%, want %d", c.gogc, c.limit, got, c.want)
		}
	}
}
