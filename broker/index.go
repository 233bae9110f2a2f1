package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// index is the list of sessions: who takes part in which, and its state. It is
// derived from the transcripts; memory follows the stream. Those that are not
// over have subjects of their own: they are few and are there before the broker
// serves. The others, of which there may be a million, come while it serves;
// whoever wants a list waits for them.
type index struct {
	b *Broker

	mu     sync.RWMutex
	lines  *lines
	loaded chan struct{} // closed when those that are over are there too

	open, opening map[performatives.Agent]int // sessions by inviter: not over, about to be opened
}

// A line is what the index holds of a session.
type line struct {
	State   session.Phase         `json:"state"`
	Parties []performatives.Agent `json:"participants"`
	Entries uint64                `json:"entries"` // of the transcript that it was made from
}

func (b *Broker) openIndex(ctx context.Context) error {
	x := &index{
		b: b, lines: newLines(), loaded: make(chan struct{}),
		open: map[performatives.Agent]int{}, opening: map[performatives.Agent]int{},
	}
	b.index = x
	few := store.Feed{Stream: api.IndexStream, Filters: []string{api.AllIndex}}
	caughtUp, err := b.store.Follow(ctx, b.work, few, func(m store.Message, _ bool) {
		if id, l, ok := x.read(m, api.Index("")); ok {
			x.Keep(id, l)
		}
	})
	if err != nil {
		return err
	}
	if err := background.Await(ctx, caughtUp); err != nil {
		return err
	}
	b.work.Go(func(ctx context.Context) {
		if err := b.store.Patiently(ctx, "sessions that are over", x.load); err != nil && ctx.Err() == nil {
			b.Log.Error("sessions that are over are not listed", zap.Error(err))
		}
	})
	return nil
}

// load reads the sessions that are over, and follows what is over from then on.
func (x *index) load(ctx context.Context) error {
	past := newLines()
	many := store.Feed{Stream: api.IndexStream, Filters: []string{api.AllOver}}
	caughtUp, err := x.b.store.Follow(ctx, x.b.work, many, func(m store.Message, old bool) {
		id, l, ok := x.read(m, api.IndexOver(""))
		switch {
		case !ok:
		case old:
			past.add(compact(id), l)
		default:
			x.Keep(id, l)
		}
	})
	if err != nil {
		return err
	}
	if err := background.Await(ctx, caughtUp); err != nil {
		return err
	}
	if err := x.loadCatalogue(ctx, past); err != nil { // what has moved there meanwhile is on a page
		return err
	}
	past.sort()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.lines.all { // the line of an open session may have been left behind
		id := x.lines.rows[r].session()
		stale, _ := x.lines.line(id)
		if now, there := past.line(id); there && now.Entries > stale.Entries {
			x.count(stale, now)
		}
	}
	past.absorb(x.lines)
	x.lines = past
	close(x.loaded)
	return nil
}

// read reads a message of the stream. An empty one says that the session has
// gone to those that are over.
func (x *index) read(m store.Message, prefix string) (id performatives.SessionID, l line, ok bool) {
	id, err := performatives.ParseSessionID(strings.TrimPrefix(m.Subject, prefix))
	if err != nil || len(m.Data) == 0 {
		return id, l, false
	}
	if err := json.Unmarshal(m.Data, &l); err != nil {
		x.b.Log.Error("index", zap.String("subject", m.Subject), zap.Error(err))
		return id, l, false
	}
	return id, l, true
}

// note makes memory agree with an act before it is answered, so that whoever
// has the acceptance finds what it did.
func (b *Broker) note(l *live, before session.Phase) {
	roll := l.state.Roll()
	if before != l.state.Phase || l.members != len(roll) {
		b.index.Keep(l.id, line{l.state.Phase, roll, l.state.Next})
	}
	if before == session.Escalated || l.state.Phase == session.Escalated {
		b.noteApproval(l)
	}
}

// Keep takes the newer word on a session.
func (x *index) Keep(id performatives.SessionID, l line) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, _ := x.lines.line(id)
	if old.Entries > l.Entries {
		return
	}
	x.lines.put(id, l)
	x.count(old, l)
}

// Row is what memory holds of a session.
func (x *index) Row(id performatives.SessionID) (l line, there bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.lines.line(id)
}

// Names tells whether a session names a principal, without reading it.
func (x *index) Names(ctx context.Context, id performatives.SessionID, a performatives.Agent) bool {
	named := func() bool {
		x.mu.RLock()
		defer x.mu.RUnlock()
		l, _ := x.lines.line(id)
		return slices.Contains(l.Parties, a)
	}
	return named() || background.Await(ctx, x.loaded) == nil && named()
}

// Page lists at most n of the sessions that are picked, those in a state ("" for
// any), the newest first, before a cursor.
func (x *index) Page(ctx context.Context, pick func(*lines) [][]uint32, state, before string, n int) ([]performatives.SessionID, error) {
	if err := background.Await(ctx, x.loaded); err != nil {
		return nil, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []performatives.SessionID
	for _, sorted := range pick(x.lines) {
		found = append(found, x.lines.newest(sorted, state, before, n)...)
	}
	slices.SortFunc(found, func(a, b performatives.SessionID) int { return strings.Compare(string(b), string(a)) })
	found = slices.Compact(found)
	return found[:min(n, len(found))], nil
}

// reindex writes the session's line if it has changed.
func (b *Broker) reindex(ctx context.Context, l *live) error {
	roll := l.state.Roll()
	if l.indexed == l.state.Phase && l.members == len(roll) {
		return nil
	}
	now := line{l.state.Phase, roll, l.state.Next}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	subject := api.Index(l.id)
	if now.State.Over() {
		subject = api.IndexOver(l.id)
	}
	if _, err := b.store.Put(ctx, store.Message{Subject: subject, Data: data}); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if now.State.Over() {
		if _, err := b.store.Put(ctx, store.Message{Subject: api.Index(l.id), Header: gone}); err != nil {
			return fmt.Errorf("index: %w", err)
		}
	}
	b.index.Keep(l.id, now)
	l.indexed, l.members = l.state.Phase, len(roll)
	return nil
}

// gone takes the lines of an open session out of the list, and then itself. A server
// that is killed remembers what such a message has purged. What only made room for
// another on its subject it does not: when the other has expired, the one before is back.
var gone = store.Header{store.RollupHeader: {store.RollupSubject}, store.TTLHeader: {"1s"}}
