package broker

import (
	"context"

	"github.com/parley-asp/parley/broker/reads"
	"github.com/parley-asp/parley/performatives"
)

// View reads a session that is up to date, in its turn.
func (b *Broker) View(ctx context.Context, id performatives.SessionID, read func(*reads.Session)) error {
	return b.view(ctx, id, func(l *cachedSession) { read(b.snapshot(l)) })
}

// snapshot is a cached session as it is now.
func (b *Broker) snapshot(l *cachedSession) *reads.Session {
	unapplied := l.unapplied
	return &reads.Session{
		State: l.state, At: b.clock(l), Sequences: l.sequences, Archived: l.archived,
		Recent: func(sequence uint64) []byte {
			for _, d := range unapplied {
				if d.sequence == sequence {
					return d.entry.Data
				}
			}
			return nil
		},
	}
}
