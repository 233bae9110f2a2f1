package main

import (
	"bytes"
	"context"
	"runtime/debug"
	"strings"
	"testing"
)

// Who stops a broker that is starting has stopped it, and nothing has failed.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	root := rootCommand()
	var out bytes.Buffer
	root.SetErr(&out)
	root.SetArgs([]string{"serve", "--dev", "--data", t.TempDir(), "--listen", "127.0.0.1:-1", "--http", "127.0.0.1:0"})
	if err := root.ExecuteContext(ctx); err != nil || !strings.Contains(out.String(), "parley: stopped while starting") {
		t.Errorf("%v: %s", err, out.String())
	}
}

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
