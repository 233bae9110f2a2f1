package broker

import (
	"context"

	"github.com/parley-asp/parley/availability"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/proposals"
	"github.com/parley-asp/parley/session"
)

func (b *Broker) openProposals(context.Context) (err error) {
	b.proposals, err = proposals.Open(proposals.Options{
		Registry: b.registry, Bus: b.store.Bus(), Broker: b.id, Queue: b.list.Busy, Now: b.Now, Enter: b.takeSlot,
		Gone: func(a performatives.Agent) bool {
			online, last := b.available.Of(a)
			return !online && !last.IsZero()
		},
	})
	return err
}

// maxAssessing is how many calls for proposals wait for a slot; then one more of each principal may.
const maxAssessing = 1024

// takeSlot waits for a slot to assess cards in. There are so few that acts have a core left.
func (b *Broker) takeSlot(a performatives.Agent) (leave func(), err error) {
	wait, joined := b.assessing.Join(a)
	if !joined {
		return nil, session.Busy()
	}
	return wait().Done, nil
}

// Proposals calls for proposals.
func (b *Broker) Proposals() *proposals.Calls { return b.proposals }

func (b *Broker) openAvailability(ctx context.Context) (err error) {
	b.available, err = availability.Open(ctx, availability.Options{
		Store: b.store, Bus: b.store.Bus(), Now: b.Now, Log: b.Log,
		Known: func(a performatives.Agent) bool { _, registered := b.registry.Card(a); return registered || b.Dev },
	})
	return err
}

// Seen says that an agent is there: it holds a stream open.
func (b *Broker) Seen(a performatives.Agent) { b.available.Seen(a) }
