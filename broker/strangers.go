package broker

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// Under --dev a principal that is named for the first time is registered with
// an empty card (PROTOCOL.md §10).

// strangersCard is the empty card of a principal named for the first time
// under --dev; there, everybody is trusted.
func strangersCard(a performatives.Agent) api.Card {
	full := 100.0
	return api.Card{Agent: a, Kind: defaultKind(a), Registry: api.Registry{TrustScore: &full, MayDecide: a.IsHuman()}}
}

// Stranger is who a principal is, under --dev, that nobody has registered yet.
func (r *registry) Stranger(a performatives.Agent) performatives.Member {
	return r.b.pinned(strangersCard(a))
}

func defaultKind(a performatives.Agent) string {
	if a.IsHuman() {
		return performatives.KindHuman
	}
	return performatives.KindPersonal
}

// meet writes the card of a stranger, unless another broker has just written one.
func (r *registry) meet(ctx context.Context, c api.Card) error {
	now := r.b.Now().UTC().Format(time.RFC3339Nano)
	c.Registry.RegisteredAt, c.Registry.UpdatedAt = now, now
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := r.openInbox(ctx, c.Agent); err != nil {
		return err
	}
	revision, err := r.bucket.Create(ctx, toKey(c.Agent.Token()), data)
	if errors.Is(err, store.ErrKeyExists) {
		return nil // the watch brings it
	}
	if err != nil {
		return err
	}
	r.keep(c, revision)
	return nil
}

// registerNamed writes the cards of strangers that an act brings in, which
// happens under --dev only.
func (b *Broker) registerNamed(ctx context.Context, m *performatives.Message, joined []performatives.Member) error {
	if !b.Dev {
		return nil
	}
	named := []performatives.Agent{m.Sender, m.Recipient}
	for _, member := range joined {
		named = append(named, member.Agent)
	}
	for _, a := range named {
		if a == "" || a.IsBroker() {
			continue
		}
		if _, known := b.registry.Card(a); !known {
			if err := b.registry.meet(ctx, strangersCard(a)); err != nil {
				return err
			}
		}
	}
	return nil
}
