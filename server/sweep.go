package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/approvals"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
)

// Sweeps take a small part of the time.
const (
	shortestPause = 10 * time.Second
	pauses        = 60 // times as long as a sweep took
)

// expiries are the sessions that have expired, and are to be swept.
type expiries struct {
	mu   sync.Mutex
	ids  map[performatives.SessionID]bool
	some chan struct{} // has one while there may be some
}

func newExpiries() *expiries {
	return &expiries{ids: map[performatives.SessionID]bool{}, some: make(chan struct{}, 1)}
}

func (e *expiries) add(id performatives.SessionID) {
	e.mu.Lock()
	e.ids[id] = true
	e.mu.Unlock()
	select {
	case e.some <- struct{}{}:
	default:
	}
}

func (e *expiries) has(id performatives.SessionID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ids[id]
}

func (e *expiries) all() []performatives.SessionID {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.ids))
}

// swept takes out those of which nothing is left, and reports whether others are there.
func (e *expiries) swept(ids, but []performatives.SessionID) (others bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := map[performatives.SessionID]bool{}
	for _, id := range but {
		left[id] = true
	}
	for _, id := range ids {
		if !left[id] {
			delete(e.ids, id)
		}
	}
	return len(e.ids) > 0
}

// expired tells of a session that is no longer kept.
func (b *Broker) expired(id performatives.SessionID) {
	b.Command.Forget(id)
	if opened := b.approvals.Load(); opened != nil {
		opened.Forget(id)
	}
	b.expiries.add(id)
}

// openSweeps erases what people were asked and told in sessions that are no longer kept: at the start, and after some have expired.
func (b *Broker) openSweeps(ctx context.Context) error {
	if !b.Parts.Store.Archives() {
		return nil
	}
	may, err := b.Parts.Store.Erasable(ctx)
	if err != nil || !may {
		if err == nil && b.Options.Archive.Deletes() {
			b.Options.Log.Warn("escalations of sessions that are no longer kept stay: the store was made by a version that never deletes, and a restored backup of it lets them be erased")
		}
		return err
	}
	group := background.New()
	b.closes(group.Close)
	group.Go(b.sweeps)
	return nil
}

func (b *Broker) sweeps(ctx context.Context) {
	if background.Await(ctx, b.Parts.List.Loaded()) != nil {
		return
	}
	all := b.Options.Archive.Over(time.Time{}, time.Now()) // of every session a time comes when it is gone
	kept := approvals.Kept{Gone: b.gone, MayBeGone: func(id performatives.SessionID) bool {
		_, listed := b.Parts.List.Row(id)
		return !listed && (all || b.expiries.has(id))
	}}
	if !all && background.Await(ctx, b.expiries.some) != nil {
		return
	}
	for {
		began, known := time.Now(), b.expiries.all()
		waiting, more, err := b.Parts.Approvals.Sweep(ctx, kept)
		if err != nil && ctx.Err() == nil {
			b.Options.Log.Warn("sweep", zap.Error(err))
		}
		if err != nil || more {
			waiting = known
		}
		others := b.expiries.swept(known, waiting)
		if background.Pause(ctx, max(shortestPause, pauses*time.Since(began))) != nil {
			return
		}
		if err == nil && !more && !others && background.Await(ctx, b.expiries.some) != nil {
			return
		}
	}
}

// gone reports whether a session has ended, and its time is over: this broker saw it expire, or it ended too long ago. That
// its transcript is not there proves nothing: it may be lost.
func (b *Broker) gone(ctx context.Context, id performatives.SessionID) (bool, error) {
	entry, err := b.Parts.Store.LastEntry(ctx, id)
	if err != nil || entry > 0 {
		return false, err
	}
	archived, err := b.Parts.Store.Last(ctx, api.ArchiveStream, api.Archive(id))
	if err != nil || archived != nil {
		return false, err
	}
	at, ended, err := b.Parts.Ledger.Ended(ctx, id)
	return ended && (b.expiries.has(id) || b.Options.Archive.Over(at, time.Now())), err
}
