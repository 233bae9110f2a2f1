package broker

import "testing"

// Work counts as in hand until it is done, also while it waits for the store and has
// released its slot; a second core is used only while there is one for each.
func TestIdle(t *testing.T) {
	t.Parallel()
	s := newScheduler(4)
	one, two := s.enter("agent://acme.com/a"), s.enter("agent://acme.com/b")
	if !s.idle() {
		t.Error("two pieces of work on four cores leave none idle")
	}
	three := s.enter("agent://acme.com/c")
	three.release()
	three.release()
	if s.idle() {
		t.Error("work that waits for the store is taken for done")
	}
	three.done()
	if !s.idle() {
		t.Error("work that is done is taken for work in hand")
	}
	one.done()
	two.done()
	if s.free != 4 {
		t.Errorf("%d slots are free, not 4", s.free)
	}
	alone := newScheduler(1)
	if alone.enter("agent://acme.com/a"); alone.idle() {
		t.Error("a second core where there is one")
	}
}

// What waits is bounded. A principal that has nothing waiting may still wait, so that
// nobody is kept out by others.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	s := newScheduler(1)
	s.most = 3
	working := s.enter("agent://acme.com/a")
	var waiting []func() *slot
	for range 3 {
		wait, joined := s.join("agent://acme.com/a")
		if !joined {
			t.Fatal("there was room to wait")
		}
		waiting = append(waiting, wait)
	}
	if _, joined := s.join("agent://acme.com/a"); joined {
		t.Error("four wait")
	}
	other, joined := s.join("agent://acme.com/b")
	if !joined {
		t.Fatal("one principal keeps another out")
	}
	if _, joined := s.join("agent://acme.com/b"); joined {
		t.Error("two of the other wait, too")
	}
	working.done()
	waiting[0]().done()
	other().done() // they take turns
	if _, joined := s.join("agent://acme.com/a"); !joined {
		t.Error("there is room again")
	}
}
