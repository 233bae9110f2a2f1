package registry

import (
	"context"
	"errors"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// Under --dev a principal that is named for the first time is registered with an
// empty card (PROTOCOL.md §10).

// Meet registers, under --dev, those of the principals that are not registered yet.
func (r *Registry) Meet(ctx context.Context, agents ...performatives.Agent) error {
	if !r.o.Dev {
		return nil
	}
	for _, a := range agents {
		if _, known := r.Card(a); known || a == "" || a.IsBroker() {
			continue
		}
		if err := r.openInbox(ctx, a); err != nil {
			return err
		}
		card := r.newcomer(a)
		if err := r.write(ctx, &card, 0); err != nil && !errors.Is(err, store.ErrKeyExists) {
			return err
		}
	}
	return nil
}

// newcomer is the card of a principal that is named for the first time. It is trusted.
func (r *Registry) newcomer(a performatives.Agent) api.Card {
	full, kind := 100.0, defaultKind(a)
	if r.o.Standbys && a == api.StandbyOf(a.Organisation()) {
		kind = performatives.KindSystem
	}
	return api.Card{Agent: a, Kind: kind, Registry: api.Registry{TrustScore: &full, MayDecide: a.IsHuman()}}
}

func defaultKind(a performatives.Agent) string {
	if a.IsHuman() {
		return performatives.KindHuman
	}
	return performatives.KindPersonal
}
