package broker

import (
	"strconv"
	"strings"
	"sync"
	"time"
)

// slots are messages that were sent and will each be answered once, on a subject
// of its own below one subscription. One that is not answered in time, or whose
// connection breaks, is failed; so each ends in one of the two ways.
type slots[T any] struct {
	prefix  string // what the subjects of answers begin with
	most    int    // on their way at a time; who comes then waits
	silence time.Duration
	failed  func(T, error)

	mu       sync.Mutex
	room     sync.Cond
	open     map[uint64]slot[T]
	last     uint64 // number that was given to one
	watching bool   // for those that stay silent
	closed   bool
}

type slot[T any] struct {
	of T
	at time.Time
}

func newSlots[T any](prefix string, most int, silence time.Duration, failed func(T, error)) *slots[T] {
	s := &slots[T]{prefix: prefix, most: most, silence: silence, failed: failed, open: map[uint64]slot[T]{}}
	s.room.L = &s.mu
	return s
}

// put keeps a place for an answer, and tells its subject.
func (s *slots[T]) put(of T) (reply string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.open) >= s.most && !s.closed {
		s.room.Wait()
	}
	if s.closed {
		return "", errLinkBroke
	}
	s.last++
	s.open[s.last] = slot[T]{of, time.Now()}
	if !s.watching {
		s.watching = true
		time.AfterFunc(s.silence/4, s.watch)
	}
	return s.prefix + strconv.FormatUint(s.last, 36), nil
}

// sent is how many messages there were.
func (s *slots[T]) sent() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// take ends the wait for an answer on a subject (or by its last token), if there
// is one still: whoever takes it sees to it.
func (s *slots[T]) take(reply string) (of T, waited bool) {
	number, err := strconv.ParseUint(strings.TrimPrefix(reply, s.prefix), 36, 64)
	if err != nil {
		return of, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, waited := s.open[number]
	if waited {
		delete(s.open, number)
		s.room.Signal()
	}
	return found.of, waited
}

// watch fails what was not answered in time, again and again while anything is
// on its way.
func (s *slots[T]) watch() {
	s.fail(errSilence, time.Now().Add(-s.silence))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching = len(s.open) > 0; s.watching {
		time.AfterFunc(s.silence/4, s.watch)
	}
}

// fail ends the wait for what was sent up to a time.
func (s *slots[T]) fail(why error, until time.Time) {
	var all []T
	s.mu.Lock()
	for number, of := range s.open {
		if !of.at.After(until) {
			delete(s.open, number)
			all = append(all, of.of)
		}
	}
	s.room.Broadcast()
	s.mu.Unlock()
	for _, of := range all {
		s.failed(of, why)
	}
}

// end fails all, and whatever is sent from now on.
func (s *slots[T]) end(why error) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.fail(why, time.Now())
}
