package broker

import "testing"

// Work counts as in hand until it is done, also while it waits for the store and
// has left its seat; a second core is taken only while there is one for each.
func TestIdle(t *testing.T) {
	t.Parallel()
	f := newFair(4)
	one, two := f.enter("agent://acme.com/a"), f.enter("agent://acme.com/b")
	if !f.idle() {
		t.Error("two pieces of work on four cores leave none idle")
	}
	three := f.enter("agent://acme.com/c")
	three.leave()
	three.leave()
	if f.idle() {
		t.Error("work that waits for the store is taken for done")
	}
	three.done()
	if !f.idle() {
		t.Error("work that is done is taken for work in hand")
	}
	one.done()
	two.done()
	if f.free != 4 {
		t.Errorf("%d seats are free, not 4", f.free)
	}
	alone := newFair(1)
	if alone.enter("agent://acme.com/a"); alone.idle() {
		t.Error("a second core where there is one")
	}
}
