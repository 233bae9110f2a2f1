package broker

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/entries"
	"github.com/parley-asp/parley/performatives"
)

// tellStandbys puts the entry since which a turn waits into the inbox of the standby that may
// take it by now, once. The session's timer fires then.
func (b *Broker) tellStandbys(ctx context.Context, l *cachedSession) error {
	_, overdue := l.state.Waiting(b.clock(l))
	var told []delivery
	for _, w := range overdue {
		e, err := b.store.At(ctx, api.SessionsStream, l.sequences[w.Sequence])
		if err != nil {
			return err
		}
		if e == nil {
			return entries.ErrMoved
		}
		delete(l.inboxes, w.Standby) // another broker may have told it
		told = append(told, delivery{sequence: w.Sequence, entry: e.Data, to: []performatives.Agent{w.Standby}, again: true})
	}
	return b.deliverAll(ctx, l, told)
}
