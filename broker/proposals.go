package broker

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/availability"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/proposals"
	"github.com/parley-asp/parley/session"
)

func (b *Broker) openProposals(context.Context) (err error) {
	b.proposals, err = proposals.Open(proposals.Options{
		Registry: b.registry, Bus: bus{b}, Broker: b.id, Queue: b.list.Busy, Now: b.Now, Enter: b.takeSlot,
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
		Store: b.store, Bus: bus{b}, Now: b.Now, Log: b.Log,
		Known: func(a performatives.Agent) bool { _, registered := b.registry.Card(a); return registered || b.Dev },
	})
	return err
}

// Seen says that an agent is there: it holds a stream open.
func (b *Broker) Seen(a performatives.Agent) { b.available.Seen(a) }

// A bus is the broker's connection, for messages that need not last. The server disconnects
// who sends a subject of more than 4 KiB, so a bus sends none that is nearly so long.
type bus struct{ b *Broker }

const longestSubject = 1 << 10

var errSubject = errors.New("the subject is too long")

func (t bus) Publish(subject string, data []byte) error {
	if len(subject) > longestSubject {
		return errSubject
	}
	return t.b.Conn.Publish(subject, data)
}

func (t bus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if len(subject) > longestSubject {
		return nil, errSubject
	}
	reply, err := t.b.Conn.RequestWithContext(ctx, subject, data)
	if err != nil {
		return nil, err
	}
	return reply.Data, nil
}

func (t bus) Listen(subject string, answer func([]byte) []byte) (stop func(), err error) {
	s, err := t.b.Conn.Subscribe(subject, func(m *nats.Msg) {
		if err := m.Respond(answer(m.Data)); err != nil {
			t.b.Log.Debug("reply not sent", zap.Error(err))
		}
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = s.Unsubscribe() }, nil // fails only on a connection that is closed
}
