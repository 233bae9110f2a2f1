package store

import (
	"context"
	"sync"

	"github.com/parley-asp/parley/internal/background"
)

// A Watcher tells readers that a stream has something new for them.
//
//	w := s.Watcher(api.InboxStream, func(subject string) []string { return []string{subject} })
//	defer w.Close()
//	changed, stop, err := w.Watch(ctx, api.Inbox(agent, id))
//	defer stop()
//	// read what is there, then wait for changed, and read on
//
// One consumer follows the stream, without its messages, while anybody watches. Whoever
// watches first and then reads misses nothing: a change is told after it is stored.
type Watcher struct {
	store  *Store
	stream string
	keys   func(subject string) []string // what watchers of a subject watch

	opening sync.Mutex // held while the consumer is opened or closed
	work    *background.Group
	count   int
	closed  bool

	mu       sync.Mutex
	watchers map[string]map[chan struct{}]struct{}
}

// Watcher makes a watcher of a stream. keys are what the watchers of a subject watch.
func (s *Store) Watcher(stream string, keys func(subject string) []string) *Watcher {
	return &Watcher{store: s, stream: stream, keys: keys, watchers: map[string]map[chan struct{}]struct{}{}}
}

// Watch reports what is stored from now on. Changes that nobody has taken yet are told
// once. stop ends it.
func (w *Watcher) Watch(ctx context.Context, key string) (changed <-chan struct{}, stop func(), err error) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	if w.watchers[key] == nil {
		w.watchers[key] = map[chan struct{}]struct{}{}
	}
	w.watchers[key][c] = struct{}{}
	w.mu.Unlock()
	forget := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watchers[key], c)
		if len(w.watchers[key]) == 0 {
			delete(w.watchers, key)
		}
	}
	if err := w.open(ctx); err != nil {
		forget()
		return nil, nil, err
	}
	return c, sync.OnceFunc(func() { forget(); w.leave() }), nil
}

func (w *Watcher) open(ctx context.Context) error {
	w.opening.Lock()
	defer w.opening.Unlock()
	if w.closed {
		return context.Canceled
	}
	if w.count == 0 {
		work := background.New()
		if _, err := w.store.Follow(ctx, work, Feed{Stream: w.stream, New: true, HeadersOnly: true}, w.saw); err != nil {
			work.Close()
			return err
		}
		w.work = work
	}
	w.count++
	return nil
}

func (w *Watcher) leave() {
	w.opening.Lock()
	defer w.opening.Unlock()
	if w.count--; w.count == 0 && !w.closed {
		w.work.Close()
	}
}

// Close follows the stream no longer.
func (w *Watcher) Close() {
	w.opening.Lock()
	defer w.opening.Unlock()
	if !w.closed && w.count > 0 {
		w.work.Close()
	}
	w.closed = true
}

func (w *Watcher) saw(m Message, _ bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range w.keys(m.Subject) {
		for c := range w.watchers[key] {
			select {
			case c <- struct{}{}:
			default: // it has not looked at the one before yet
			}
		}
	}
}
