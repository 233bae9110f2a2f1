package broker

import (
	"sync"
	"sync/atomic"

	"github.com/parley-asp/parley/performatives"
)

// A fair divides so many seats among all who want to work at once: each
// principal has a row of its own, and the rows take turns. Whoever asks for
// little waits for one piece of work of another's, however much that one asks.
type fair struct {
	seats int
	busy  atomic.Int32 // pieces of work that have begun, those that wait for the store too

	mu    sync.Mutex
	free  int
	rows  map[performatives.Agent]*row
	turns []*row // rows in which somebody waits
}

// A row is one principal's, while somebody waits in it.
type row struct {
	agent   performatives.Agent
	waiting []chan struct{}
}

func newFair(seats int) *fair {
	return &fair{seats: seats, free: seats, rows: map[performatives.Agent]*row{}}
}

// A seat is one piece of work's, until it is left or the work is done.
type seat struct {
	fair *fair
	left bool
}

// enter waits for a seat.
func (f *fair) enter(a performatives.Agent) *seat {
	f.busy.Add(1)
	f.mu.Lock()
	if f.free > 0 {
		f.free--
		f.mu.Unlock()
		return &seat{fair: f}
	}
	r := f.rows[a]
	if r == nil {
		r = &row{agent: a}
		f.rows[a] = r
		f.turns = append(f.turns, r)
	}
	turn := make(chan struct{})
	r.waiting = append(r.waiting, turn)
	f.mu.Unlock()
	<-turn
	return &seat{fair: f}
}

// idle tells whether each piece of work may have two cores: with more of it in
// hand, what waits for the store now will want its core in a moment, and a second
// goroutine only costs.
func (f *fair) idle() bool { return 2*int(f.busy.Load()) <= f.seats }

// leave gives the seat to whose turn it is, once. Work leaves it before it
// waits for the store: what waits does not keep others from working.
func (s *seat) leave() {
	if s.left {
		return
	}
	s.left = true
	f := s.fair
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.turns) == 0 {
		f.free++
		return
	}
	r := f.turns[0]
	f.turns = f.turns[1:]
	close(r.waiting[0])
	if r.waiting = r.waiting[1:]; len(r.waiting) > 0 {
		f.turns = append(f.turns, r)
	} else {
		delete(f.rows, r.agent)
	}
}

// done leaves the seat if it is not left yet: the work is done.
func (s *seat) done() {
	s.leave()
	s.fair.busy.Add(-1)
}
