package server

import (
	"context"
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

// expired tells of a session that is no longer kept.
func (b *Broker) expired(id performatives.SessionID) {
	b.Command.Forget(id)
	if opened := b.approvals.Load(); opened != nil {
		opened.Forget(id)
	}
	select {
	case b.expiries <- struct{}{}:
	default: // a sweep is due already
	}
}

// openSweeps erases what people were asked and told in sessions that are no longer kept: at the start, and after some have expired.
func (b *Broker) openSweeps(ctx context.Context) error {
	if !b.Options.Expire || !b.Parts.Store.Archives() {
		return nil
	}
	may, err := b.Parts.Store.Erasable(ctx)
	if err != nil || !may {
		if err == nil {
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
	kept := approvals.Kept{Gone: b.gone, Listed: func(id performatives.SessionID) bool {
		_, listed := b.Parts.List.Row(id)
		return listed
	}}
	for {
		began := time.Now()
		others, err := b.Parts.Approvals.Sweep(ctx, kept)
		if err != nil && ctx.Err() == nil {
			b.Options.Log.Warn("sweep", zap.Error(err))
		}
		if background.Pause(ctx, max(shortestPause, pauses*time.Since(began))) != nil {
			return
		}
		if err == nil && others == 0 && background.Await(ctx, b.expiries) != nil {
			return
		}
	}
}

// gone reports whether a session has ended, and its transcript is no longer kept.
func (b *Broker) gone(ctx context.Context, id performatives.SessionID) (bool, error) {
	entry, err := b.Parts.Store.LastEntry(ctx, id)
	if err != nil || entry > 0 {
		return false, err
	}
	archived, err := b.Parts.Store.Last(ctx, api.ArchiveStream, api.Archive(id))
	if err != nil || archived != nil {
		return false, err
	}
	return b.Parts.Ledger.Ended(ctx, id)
}
