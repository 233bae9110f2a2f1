package turns

import (
	"context"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Other brokers have sessions go on, too, and the queues are told of it later. So a pickup that finds
// nothing reads which entries were appended since this broker last looked, by whomever, and then
// looks at their sessions alone: what it costs does not grow with the sessions that are open.

// mostNews is how many entries are read. After more, every session is looked at.
const mostNews = 5000

// begin notes where the transcripts end, once, before there is a queue: whatever comes later is news.
func (t *Turns) begin(ctx context.Context) error {
	if t.o.Alone {
		return nil
	}
	select {
	case t.reading <- struct{}{}:
		defer func() { <-t.reading }()
	case <-ctx.Done():
		return session.Busy()
	}
	if t.begun {
		return nil
	}
	newest, err := t.o.Store.NewestEntries(ctx)
	t.seen, t.begun = newest, err == nil
	return err
}

// hear tells the queues of the sessions that went on since it was last called, at whichever broker.
func (t *Turns) hear(ctx context.Context) error {
	select {
	case t.reading <- struct{}{}:
		defer func() { <-t.reading }()
	case <-ctx.Done():
		return session.Busy()
	}
	newest, err := t.o.Store.NewestEntries(ctx)
	if err != nil || newest.Since(t.seen) == 0 {
		return err
	}
	if newest.Since(t.seen) > mostNews {
		t.wakeAll()
		t.seen = newest
		return nil
	}
	return t.o.Store.ReadSince(ctx, t.seen, func(m store.Message) error {
		id := performatives.SessionID(strings.TrimPrefix(m.Subject, api.Session("")))
		participants, over := t.o.Participants(id)
		t.Moved(id, participants, over)
		t.seen.After(m.Sequence)
		return nil
	})
}

// wakeAll has every session at the front again.
func (t *Turns) wakeAll() {
	t.queueing.RLock()
	defer t.queueing.RUnlock()
	for _, q := range t.queues {
		q.wake()
	}
}
