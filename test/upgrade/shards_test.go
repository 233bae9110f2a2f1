//go:build long

package upgrade_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/parley-asp/parley/api"
)

// TestShards has a broker that knows of no shards come to a store that has some, under load. It ends, says which stream
// it cannot have, and harms nothing.
func TestShards(t *testing.T) {
	w := newWorldOf(t, 3)
	one := w.serves(now, "--shards", "3")
	w.connects()
	l := w.begins(3)
	l.goesOn(6)
	old := w.starts(release(t, "format-7"), "--nats", w.url)
	if err := old.ready(); err == nil || !strings.Contains(err.Error(), api.SessionsStream+": ") {
		t.Errorf("the old broker is ready, or says otherwise: %v", err)
	}
	l.goesOn(6)
	one.ends(syscall.SIGKILL)
	w.serves(now, "--shards", "3")
	l.goesOn(6)
	l.stops()
	w.agrees(l.talks)
	w.verifies(now, len(l.talks))
}
