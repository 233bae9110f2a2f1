package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/store"
)

// tellPeople tells humans of what was delegated to them, and of what is due.
func (b *Broker) tellPeople(ctx context.Context, l *cachedSession) error {
	return errors.Join(b.tellDelegates(ctx, l), b.tellDue(ctx, l))
}

// tellDelegates tells humans of what was delegated to them, each delegation once.
func (b *Broker) tellDelegates(ctx context.Context, l *cachedSession) error {
	for _, g := range l.state.GrantsAfter(l.told) {
		if g.To.IsHuman() && g.Status == delegation.Offered && !l.state.Phase.Over() {
			data, err := json.Marshal(api.AskedOf(&l.state, g, b.clock(l)))
			if err != nil {
				return err
			}
			// Its subject is its own: a second write conflicts with the first.
			sequence, err := b.parts.Store.PutIf(ctx, store.Message{Subject: api.PeopleOf(g.To.Organisation(), string(g.ID)), Data: data}, 0)
			if err == nil {
				err = b.parts.Store.Sync(api.CaseLogStream, sequence)
			}
			if err != nil && !errors.Is(err, store.ErrConflict) {
				return fmt.Errorf("notice of a delegation: %w", err)
			}
		}
		l.told++
	}
	return nil
}
