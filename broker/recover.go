package broker

import (
	"context"

	"github.com/parley-asp/parley/cluster"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// join makes this broker a member of the cluster.
func (b *Broker) join(ctx context.Context) (err error) {
	if b.cluster == nil {
		if b.cluster, err = cluster.Open(ctx, cluster.Options{
			Store: b.store, ID: b.id, Alone: b.Alone, SyncedAfter: b.SyncedAfter, Log: b.Log, Now: b.Now,
			Recover: b.recover, Suspect: b.Silent, Reconnect: b.Reconnect,
		}); err != nil {
			return err
		}
	}
	return b.cluster.Join(ctx)
}

// recover reads a session anew and applies the side effects of its entries after a sequence.
func (b *Broker) recover(id performatives.SessionID, after uint64) <-chan error {
	done := make(chan error, 1)
	if !b.sessions.run(id, func(ctx context.Context, l *cachedSession) {
		for _, d := range l.unapplied { // what this broker has still to deliver it finds again
			after = min(after, d.position-1)
		}
		l.forget(b.Modes)
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
