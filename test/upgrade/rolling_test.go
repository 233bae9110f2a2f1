//go:build long

package upgrade_test

import (
	"syscall"
	"testing"
)

// TestRollingChange replaces two brokers of a release with the same format one after the other, under load: the first
// is drained, the second killed. Then it goes back.
func TestRollingChange(t *testing.T) {
	before := release(t, "before-keys")
	w := newWorld(t)
	one, two := w.serves(before), w.serves(before)
	w.connects()
	l := w.begins(6)
	l.goesOn(12)
	one = one.replaced(syscall.SIGTERM, now)
	l.goesOn(12)
	if n := l.silent.Load(); n > 0 {
		t.Errorf("the broker that was drained left %d acts without an answer", n)
	}
	two = two.replaced(syscall.SIGKILL, now)
	l.goesOn(12)
	one = one.replaced(syscall.SIGTERM, before)
	l.goesOn(12)
	l.stops()
	one.ends(syscall.SIGTERM)
	w.agrees(l.talks)
	two.replaced(syscall.SIGTERM, before)
	w.agrees(l.talks)
	w.holds(l.talks)
	w.verifies(before, len(l.talks))
	w.verifies(now, len(l.talks))
}
