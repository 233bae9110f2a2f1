package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/cluster"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// forget makes the next piece of work read the session anew.
func (l *cachedSession) forget(modes session.Modes) {
	l.contents = contents{state: session.New(l.id, modes)}
}

// load reads the transcript, if nothing of the session is cached.
func (b *Broker) load(ctx context.Context, l *cachedSession) error {
	if l.loaded {
		return nil
	}
	_, err := b.current(ctx, l)
	return err
}

// waits releases the slot of the act that is being judged, if there is one.
func (l *cachedSession) waits() {
	if l.slot != nil {
		l.slot.Release()
	}
}

// catchUp folds the entries after the last cached one.
func (b *Broker) catchUp(ctx context.Context, l *cachedSession) error {
	return b.catchUpFrom(ctx, l, b.parts.Members.AllApplied(l.id))
}

// catchUpFrom folds entries. The side effects of those after the applied sequence may be
// missing: another broker appended them and may not have applied them.
func (b *Broker) catchUpFrom(ctx context.Context, l *cachedSession, applied uint64) error {
	if b.parts.Store.SyncFailed() {
		return store.ErrSyncFailed
	}
	before, known := l.last, len(l.unapplied)
	err := b.parts.Store.ReadSent(ctx, api.SessionsStream, api.Session(l.id), l.last+1, func(e store.Message) error {
		stored := archive.EntryOf(e)
		entry, err := stored.Read()
		if err != nil {
			return broken(err)
		}
		next, err := session.Replay(l.state, entry.Message, entry.Stamp)
		if err != nil {
			return broken(err)
		}
		l.state, l.last, l.sequences = next, e.Sequence, append(l.sequences, e.Sequence)
		l.bytes += stored.Size()
		l.armed, l.inboxes, l.unwritten = time.Time{}, nil, false // the broker that appended the entry may have set the timer, and delivers it
		if e.Sequence > applied {
			b.parts.Members.Unapplied(e.Sequence)
			l.unapplied = append(l.unapplied, delivery{
				sequence: entry.Stamp.Sequence, position: e.Sequence, entry: stored, owner: archive.OwnerOf(entry), to: b.audience(&next), again: true,
			})
		}
		return nil
	})
	if err == nil && l.last == before || errors.Is(err, cluster.ErrBroken) || before == 0 && b.isLeaving(l) {
		if is, err := b.fromArchive(ctx, l); is || err != nil { // it is in the archive, or on its way there
			return err
		}
	}
	if err != nil {
		return err
	}
	l.loaded, l.state = true, l.state.CompactAll(longOffer)
	b.resolved(l)
	if len(l.unapplied) > known { // whoever is answered from here must find it in the list
		b.parts.List.Keep(l.id, l.row(b.clock(l)))
	}
	return nil
}

// isLeaving reports whether a session that was just read is in the archive, according to its row: what its stream has
// left of it may be a beginning that replays.
func (b *Broker) isLeaving(l *cachedSession) bool {
	row, listed := b.parts.List.Row(l.id)
	return b.parts.List.PageOf(l.id) > 0 || listed && row.Entries > l.state.Next
}

// broken is why a transcript does not replay. One of a newer format is whole: a broker of a newer version goes on
// with it.
func broken(err error) error {
	if newer, is := errors.AsType[*performatives.NewerFormatError](err); is {
		return newer
	}
	return fmt.Errorf("%w: %w", cluster.ErrBroken, err)
}

// resolved ends an indeterminate append: the transcript was read after it, so its outcome
// is known.
func (b *Broker) resolved(l *cachedSession) {
	if l.indeterminate != nil {
		b.parts.Members.Appended(l.indeterminate, 0)
		l.indeterminate = nil
	}
}

// current catches up with the transcript before a refusal or a reading is based on the
// cached session: another broker may have moved it on.
func (b *Broker) current(ctx context.Context, l *cachedSession) (moved bool, err error) {
	if b.parts.Store.SyncFailed() {
		return false, store.ErrSyncFailed
	}
	l.waits()
	if l.archived {
		return false, nil
	}
	last, err := b.parts.Store.LastEntry(ctx, l.id)
	if err != nil {
		return false, err
	}
	if last == 0 && !l.loaded {
		if is, err := b.fromArchive(ctx, l); is || err != nil {
			return is, err
		}
	}
	if last == l.last {
		l.loaded = true
		b.resolved(l)
		return false, nil
	}
	return true, b.catchUp(ctx, l)
}

// view reads a session that is up to date, in its turn, and waits for that. Once it
// has returned, read does not run any more: it writes what the caller owns.
func (b *Broker) view(ctx context.Context, id performatives.SessionID, read func(*cachedSession)) error {
	done := make(chan error, 1)
	var mu sync.Mutex
	gone := false // nobody waits any more; under mu
	caller := ctx
	if !b.sessions.run(id, func(ctx context.Context, l *cachedSession) {
		begun := time.Now()
		b.o.Metrics.Looked(l.loaded)
		_, err := b.current(ctx, l)
		if err == nil {
			err = b.enterPassed(ctx, l)
		}
		mu.Lock()
		if err == nil && !gone {
			read(l)
		}
		mu.Unlock()
		limits.Worked(caller, time.Since(begun))
		done <- err
		b.finish(ctx, l)
	}) {
		return session.Busy()
	}
	var err error
	limits.Away(ctx, func() { // the session may be busy with the acts of others
		select {
		case err = <-done:
		case <-ctx.Done():
			mu.Lock()
			gone = true
			mu.Unlock()
			err = ctx.Err()
		}
	})
	if err == nil {
		return nil
	}
	if errors.Is(err, errErased) {
		return errErased
	}
	if ctx.Err() == nil {
		b.o.Log.Error("session not read", zap.String("session", string(id)), zap.Error(err))
	}
	if errors.Is(err, cluster.ErrBroken) {
		return fmt.Errorf("%w: %w", session.Busy(), cluster.ErrBroken)
	}
	return session.Busy()
}

// Recover reads a session anew and applies the side effects of its entries after a sequence.
func (b *Broker) Recover(id performatives.SessionID, after uint64) <-chan error {
	done := make(chan error, 1)
	if !b.sessions.run(id, func(ctx context.Context, l *cachedSession) {
		for _, d := range l.unapplied { // what this broker has still to deliver it finds again
			after = min(after, d.position-1)
		}
		l.forget(b.o.Modes)
		err := b.catchUpFrom(ctx, l, after)
		if err == nil {
			b.applySideEffects(ctx, l)
		}
		done <- err
	}) {
		done <- session.Busy()
	}
	return done
}
