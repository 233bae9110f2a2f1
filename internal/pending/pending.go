// Package pending keeps messages that were sent and wait for an answer, each on a
// subject of its own below one subscription.
//
//	answers := pending.New(nc.NewInbox()+".", 4096, 5*time.Second, failed)
//	reply, err := answers.Put(what) // then publish with this reply subject
//	what, found := answers.Take(m.Subject) // when the answer comes
//
// Every Put ends exactly once: by Take, or by the failed function.
package pending

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Answers are the messages that wait.
type Answers[T any] struct {
	Prefix string // of the subjects of answers

	limit   int // messages at a time; the next one waits for room
	timeout time.Duration
	failed  func(T, error)

	mu       sync.Mutex
	room     sync.Cond
	waiting  map[uint64]waiting[T]
	last     uint64 // number given out
	checking bool   // for timeouts
	closed   bool
}

// Why no answer came.
var (
	ErrTimeout = errors.New("there was no answer in time")
	ErrClosed  = errors.New("no more answers are awaited")
)

type waiting[T any] struct {
	of   T
	sent time.Time
}

// New makes an empty set. No more than limit wait at a time: the next Put waits for
// room. failed is told of what was not answered within timeout, and why.
func New[T any](prefix string, limit int, timeout time.Duration, failed func(T, error)) *Answers[T] {
	s := &Answers[T]{Prefix: prefix, limit: limit, timeout: timeout, failed: failed, waiting: map[uint64]waiting[T]{}}
	s.room.L = &s.mu
	return s
}

// Put makes room for an answer and returns its subject.
func (s *Answers[T]) Put(of T) (reply string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) >= s.limit && !s.closed {
		s.room.Wait()
	}
	if s.closed {
		return "", ErrClosed
	}
	s.last++
	s.waiting[s.last] = waiting[T]{of, time.Now()}
	if !s.checking {
		s.checking = true
		time.AfterFunc(s.timeout/4, s.check)
	}
	return s.Prefix + strconv.FormatUint(s.last, 36), nil
}

// Take ends the wait for the answer on a subject; found is false if it has ended.
func (s *Answers[T]) Take(reply string) (of T, found bool) {
	number, err := strconv.ParseUint(strings.TrimPrefix(reply, s.Prefix), 36, 64)
	if err != nil {
		return of, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w, found := s.waiting[number]
	if found {
		delete(s.waiting, number)
		s.room.Signal()
	}
	return w.of, found
}

// check fails what was not answered in time, again and again while anything waits.
func (s *Answers[T]) check() {
	s.Fail(ErrTimeout, time.Now().Add(-s.timeout))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checking = len(s.waiting) > 0; s.checking {
		time.AfterFunc(s.timeout/4, s.check)
	}
}

// Fail ends the wait for what was sent up to a time.
func (s *Answers[T]) Fail(why error, until time.Time) {
	var all []T
	s.mu.Lock()
	for number, w := range s.waiting {
		if !w.sent.After(until) {
			delete(s.waiting, number)
			all = append(all, w.of)
		}
	}
	s.room.Broadcast()
	s.mu.Unlock()
	for _, of := range all {
		s.failed(of, why)
	}
}

// End fails all, and whatever is sent from now on.
func (s *Answers[T]) End(why error) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.Fail(why, time.Now())
}

// Len is how many wait.
func (s *Answers[T]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// Total is how many have waited so far.
func (s *Answers[T]) Total() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
