// Package feed tells readers that a stream has something new for them.
//
//	f := feed.New(s, api.InboxStream, func(subject string) []string { return []string{subject} })
//	defer f.Close()
//	changed, stop, err := f.Watch(ctx, api.Inbox(agent, id))
//	defer stop()
//	// read what is there, then wait for changed, and read on
//
// One consumer follows the stream, without its messages, while anybody watches. Whoever
// watches first and then reads misses nothing: a change is told after it is stored.
package feed

import (
	"context"
	"sync"

	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/store"
)

// A Feed follows one stream.
type Feed struct {
	store  *store.Store
	stream string
	keys   func(subject string) []string // what watchers of a subject watch

	opening sync.Mutex // held while the consumer is opened or closed
	work    *background.Group
	count   int
	closed  bool

	mu       sync.Mutex
	watchers map[string]map[chan struct{}]struct{}
}

// New makes a feed that nobody watches yet.
func New(s *store.Store, stream string, keys func(subject string) []string) *Feed {
	return &Feed{store: s, stream: stream, keys: keys, watchers: map[string]map[chan struct{}]struct{}{}}
}

// Watch tells of what is stored from now on. Changes that nobody has taken yet are told
// once. stop ends it.
func (f *Feed) Watch(ctx context.Context, key string) (changed <-chan struct{}, stop func(), err error) {
	c := make(chan struct{}, 1)
	f.mu.Lock()
	if f.watchers[key] == nil {
		f.watchers[key] = map[chan struct{}]struct{}{}
	}
	f.watchers[key][c] = struct{}{}
	f.mu.Unlock()
	forget := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers[key], c)
		if len(f.watchers[key]) == 0 {
			delete(f.watchers, key)
		}
	}
	if err := f.open(ctx); err != nil {
		forget()
		return nil, nil, err
	}
	return c, sync.OnceFunc(func() { forget(); f.leave() }), nil
}

func (f *Feed) open(ctx context.Context) error {
	f.opening.Lock()
	defer f.opening.Unlock()
	if f.closed {
		return context.Canceled
	}
	if f.count == 0 {
		info, err := f.store.Info(ctx, f.stream)
		if err != nil {
			return err
		}
		work := background.New()
		if _, err := f.store.Follow(ctx, work, store.Feed{Stream: f.stream, From: info.Last + 1, HeadersOnly: true}, f.saw); err != nil {
			work.Close()
			return err
		}
		f.work = work
	}
	f.count++
	return nil
}

func (f *Feed) leave() {
	f.opening.Lock()
	defer f.opening.Unlock()
	if f.count--; f.count == 0 && !f.closed {
		f.work.Close()
	}
}

// Close follows the stream no longer.
func (f *Feed) Close() {
	f.opening.Lock()
	defer f.opening.Unlock()
	if !f.closed && f.count > 0 {
		f.work.Close()
	}
	f.closed = true
}

func (f *Feed) saw(m store.Message, _ bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range f.keys(m.Subject) {
		for c := range f.watchers[key] {
			select {
			case c <- struct{}{}:
			default: // it has not looked at the one before yet
			}
		}
	}
}
