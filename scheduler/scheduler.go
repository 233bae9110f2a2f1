// Package scheduler divides slots for work fairly among principals.
package scheduler

import (
	"sync"
	"sync/atomic"

	"github.com/parley-asp/parley/performatives"
)

// A Scheduler divides a number of slots fairly among all who want to work at once:
// each principal has a queue of its own, and the queues take turns. Whoever asks for
// little waits for one piece of another's work, however much the other asks for.
type Scheduler struct {
	slots int
	most  int          // that wait; 0 is no bound
	busy  atomic.Int32 // pieces of work that have begun, those that wait for the store too

	mu      sync.Mutex
	waiting int
	free    int
	queues  map[performatives.Agent]*queue
	turns   []*queue // those in which somebody waits
}

// A queue is one principal's, while somebody waits in it.
type queue struct {
	agent   performatives.Agent
	waiting []chan struct{}
}

// New makes a scheduler of so many slots. Once most wait, who has some waiting is refused; 0 is no bound.
func New(slots, most int) *Scheduler {
	return &Scheduler{most: most, slots: slots, free: slots, queues: map[performatives.Agent]*queue{}}
}

// A Slot is held by one piece of work until it is released or the work is done.
type Slot struct {
	scheduler *Scheduler
	released  bool
}

// Enter waits for a slot.
func (s *Scheduler) Enter(a performatives.Agent) *Slot {
	wait, _ := s.Join(a)
	return wait()
}

// Join joins the queue for a slot, unless there is no room: then wait is nil. wait waits
// for the slot.
func (s *Scheduler) Join(a performatives.Agent) (wait func() *Slot, joined bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 {
		s.busy.Add(1)
		s.free--
		return func() *Slot { return &Slot{scheduler: s} }, true
	}
	q := s.queues[a]
	if q != nil && s.most > 0 && s.waiting >= s.most {
		return nil, false
	}
	if q == nil {
		q = &queue{agent: a}
		s.queues[a] = q
		s.turns = append(s.turns, q)
	}
	turn := make(chan struct{})
	q.waiting = append(q.waiting, turn)
	s.busy.Add(1)
	s.waiting++
	return func() *Slot { <-turn; return &Slot{scheduler: s} }, true
}

// Idle tells whether each piece of work may use two cores. With more work in hand,
// what waits for the store now will want its core in a moment, and a second goroutine
// only costs.
func (s *Scheduler) Idle() bool { return 2*int(s.busy.Load()) <= s.slots }

// Release gives the slot to whose turn it is, once. Work releases it before it waits
// for the store, so that others can use the core.
func (s *Slot) Release() {
	if s.released {
		return
	}
	s.released = true
	f := s.scheduler
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.turns) == 0 {
		f.free++
		return
	}
	q := f.turns[0]
	f.turns = f.turns[1:]
	close(q.waiting[0])
	f.waiting--
	if q.waiting = q.waiting[1:]; len(q.waiting) > 0 {
		f.turns = append(f.turns, q)
	} else {
		delete(f.queues, q.agent)
	}
}

// Done releases the slot if it is still held: the work is done.
func (s *Slot) Done() {
	s.Release()
	s.scheduler.busy.Add(-1)
}
