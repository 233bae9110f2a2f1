package broker

import (
	"context"

	"github.com/parley-asp/parley/access"
	"github.com/parley-asp/parley/auditreads"
	"github.com/parley-asp/parley/entries"
	"github.com/parley-asp/parley/insights"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/queries"
)

// openQueries makes what answers questions about sessions.
func (b *Broker) openQueries(context.Context) error {
	b.access = access.New(access.Options{
		View: func(ctx context.Context, id performatives.SessionID, read func(*access.Session)) error {
			return b.view(ctx, id, func(l *cachedSession) { read(b.snapshot(l)) })
		},
		Store: b.store, List: b.list, Registry: b.registry, Alone: b.Alone, Log: b.Log,
	})
	b.entries = entries.New(b.store, b.archive)
	b.queries = queries.New(queries.Options{Access: b.access, Entries: b.entries, List: b.list, Store: b.store, Schema: b.terms.Lookup})
	b.insights = insights.Open(insights.Options{
		Access: b.access, Entries: b.entries, List: b.list, Registry: b.registry, Skew: ClockSkew, Now: b.Now, Work: b.work, Log: b.Log,
	})
	b.audits = auditreads.New(auditreads.Options{Store: b.store, Archive: b.archive, List: b.list, Timers: b.timers, Access: b.access, Now: b.Now})
	return nil
}

// snapshot is a cached session as it is now.
func (b *Broker) snapshot(l *cachedSession) *access.Session {
	unapplied := l.unapplied
	return &access.Session{
		State: l.state, At: b.clock(l), Sequences: l.sequences, Archived: l.archived,
		Recent: func(sequence uint64) []byte {
			for _, d := range unapplied {
				if d.sequence == sequence {
					return d.entry
				}
			}
			return nil
		},
	}
}
