package limits

import (
	"context"
	"testing"
)

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
	var waiting []func(context.Context) (*Slot, error)
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
	for _, wait := range []func(context.Context) (*Slot, error){waiting[0], other} { // they take turns
		slot, err := wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slot.Done()
	}
	if _, joined := s.Join("agent://acme.com/a"); !joined {
		t.Error("there is room again")
	}
}

// Nobody waits longer than its context lasts: a slot that no work gives back keeps others waiting, not
// hanging. Who leaves takes nobody's turn.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	s := NewScheduler(1, 0)
	working := s.Enter("agent://acme.com/a")
	ended, end := context.WithCancel(t.Context())
	end()
	for range 3 {
		wait, _ := s.Join("agent://acme.com/b")
		if _, err := wait(ended); err == nil {
			t.Fatal("there is a slot for two")
		}
	}
	last, _ := s.Join("agent://acme.com/b")
	Away(working.WithSlot(ended), func() {})
	if !working.released {
		t.Error("what came back has a slot that another has")
	}
	slot, err := last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	working.Done()
	slot.Done()
	if s.free != 1 || s.waiting != 0 || len(s.turns) != 0 || len(s.queues) != 0 || s.busy.Load() != 0 {
		t.Errorf("%d slots are free, %d wait, %d are at work", s.free, s.waiting, s.busy.Load())
	}
}
