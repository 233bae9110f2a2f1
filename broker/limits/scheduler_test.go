package limits

import "testing"

// Work counts as in hand until it is done, also while it waits for the store and has
// released its slot; a second core is used only while there is one for each.
func TestIdle(t *testing.T) {
	t.Parallel()
	s := NewScheduler(4, 0)
	one, two := s.Enter("agent://acme.com/a"), s.Enter("agent://acme.com/b")
	if !s.Idle() {
		t.Error("two pieces of work on four cores leave none idle")
	}
	three := s.Enter("agent://acme.com/c")
	three.Release()
	three.Release()
	if s.Idle() {
		t.Error("work that waits for the store is taken for done")
	}
	three.Done()
	if !s.Idle() {
		t.Error("work that is done is taken for work in hand")
	}
	one.Done()
	two.Done()
	if s.free != 4 {
		t.Errorf("%d slots are free, not 4", s.free)
	}
	alone := NewScheduler(1, 0)
	if alone.Enter("agent://acme.com/a"); alone.Idle() {
		t.Error("a second core where there is one")
	}
}

// What waits is bounded. A principal that has nothing waiting may still wait, so that
// nobody is kept out by others.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	s := NewScheduler(1, 3)
	working := s.Enter("agent://acme.com/a")
	var waiting []func() *Slot
	for range 3 {
		wait, joined := s.Join("agent://acme.com/a")
		if !joined {
			t.Fatal("there was room to wait")
		}
		waiting = append(waiting, wait)
	}
	if _, joined := s.Join("agent://acme.com/a"); joined {
		t.Error("four wait")
	}
	other, joined := s.Join("agent://acme.com/b")
	if !joined {
		t.Fatal("one principal keeps another out")
	}
	if _, joined := s.Join("agent://acme.com/b"); joined {
		t.Error("two of the other wait, too")
	}
	working.Done()
	waiting[0]().Done()
	other().Done() // they take turns
	if _, joined := s.Join("agent://acme.com/a"); !joined {
		t.Error("there is room again")
	}
}
