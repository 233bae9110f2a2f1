package limits

import (
	"context"
	"testing"
)

// A slot is given back once, however often it is released.
func TestRelease(t *testing.T) {
	t.Parallel()
	s := NewScheduler(2, 0)
	slot := s.Enter("agent://acme.com/a")
	slot.Release()
	slot.Release()
	if s.free != 2 {
		t.Errorf("%d slots are free, not 2", s.free)
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
	working.Release()
	for _, wait := range []func(context.Context) (*Slot, error){waiting[0], other} { // they take turns
		slot, err := wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slot.Release()
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
	working.Release()
	slot.Release()
	if s.free != 1 || s.waiting != 0 || len(s.turns) != 0 || len(s.queues) != 0 {
		t.Errorf("%d slots are free, %d wait", s.free, s.waiting)
	}
}
