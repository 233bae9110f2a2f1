package broker

import (
	"context"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// Principal finds the principal that logs in with a key.
func (b *Broker) Principal(k performatives.Key) (performatives.Agent, bool) {
	a, ok := b.registry.byKey(k)
	if !ok && !b.Alone { // another broker may have registered it just now
		b.registry.hears()
		a, ok = b.registry.byKey(k)
	}
	return a, ok
}

// hearsWithin is how long a login waits for what another broker registered.
const hearsWithin = time.Second

// hears waits until memory has what the bucket has now.
func (r *registry) hears() {
	ctx, cancel := context.WithTimeout(r.b.work.Context(), hearsWithin)
	defer cancel()
	newest, err := r.bucket.Revision(ctx)
	if err != nil {
		return
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for r.seen.Load() < newest {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}
