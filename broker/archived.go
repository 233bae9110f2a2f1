package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
)

// errNotEnded means that a session cannot be archived now.
var errNotEnded = errors.New("the session has not ended, or side effects are not applied")

// errErased is for a session of which hashes and receipts are left. Nobody has a part in it any more.
var errErased = fmt.Errorf("%w: %w", session.NoSuchSession(), transcript.ErrErased)

// Forget drops what is cached of a session that was erased, or has expired.
func (b *Broker) Forget(id performatives.SessionID) {
	if !b.sessions.caches(id) {
		return
	}
	b.sessions.run(id, func(_ context.Context, l *cachedSession) {
		if l.loaded && l.state.Phase != session.Idle && !l.state.Phase.Over() { // it has been opened anew
			b.parts.List.Keep(l.id, l.row(b.clock(l)))
			return
		}
		l.forget(b.o.Modes)
	})
}

// Ended is the row of a session that may be archived.
func (b *Broker) Ended(ctx context.Context, id performatives.SessionID) (sessionlist.Row, error) {
	var row sessionlist.Row
	var refusal error
	if err := b.view(ctx, id, func(l *cachedSession) {
		if row = l.row(b.clock(l)); !row.State.Over() || len(l.unapplied) > 0 || l.indeterminate != nil {
			refusal = errNotEnded
		}
	}); err != nil {
		return sessionlist.Row{}, err
	}
	return row, refusal
}

// fromArchive folds the archive's entries into a cached session, and reports whether
// there are any. Their side effects were applied before they were archived.
func (b *Broker) fromArchive(ctx context.Context, l *cachedSession) (is bool, err error) {
	entries, err := b.parts.Reader.Archived(ctx, l.id)
	if err != nil || entries == nil {
		return false, err
	}
	if transcript.IsErased(entries[0].Data) {
		return true, errErased
	}
	for _, d := range l.unapplied {
		b.parts.Members.Applied(d.position)
		b.o.Metrics.Delivered(d.position)
	}
	l.forget(b.o.Modes)
	for _, stored := range entries {
		e, err := stored.Read()
		if err != nil {
			return true, broken(err)
		}
		if l.state, err = session.Replay(l.state, e.Message, e.Stamp); err != nil {
			return true, broken(err)
		}
	}
	l.archived, l.loaded, l.state = true, true, l.state.CompactAll(longOffer)
	l.listed = markOf(&l.state)
	b.resolved(l)
	return true, nil
}
