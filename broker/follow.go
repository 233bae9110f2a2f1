package broker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// followStream reads the last message of each subject of a stream, returns
// when it has them all, and goes on in the background.
func (b *Broker) followStream(ctx context.Context, stream string, saw func(jetstream.Msg)) error {
	last := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
	caughtUp, err := b.followFrom(ctx, stream, last, func(m jetstream.Msg, _ bool) { saw(m) })
	if err != nil {
		return err
	}
	return within(ctx, caughtUp)
}

// lookAtConsumer is how often a broker asks whether it has all: the last message
// that it waits for may have been replaced, or have expired.
const lookAtConsumer = 250 * time.Millisecond

// followFrom reads a stream in the background, old messages before it closes
// caughtUp and then what comes.
func (b *Broker) followFrom(ctx context.Context, stream string, how jetstream.OrderedConsumerConfig, saw func(m jetstream.Msg, old bool)) (caughtUp <-chan struct{}, err error) {
	c, err := b.js.OrderedConsumer(ctx, stream, how)
	if err != nil {
		return nil, err
	}
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	var has atomic.Uint64 // what of the consumer's messages was seen
	var done atomic.Bool
	all := make(chan struct{})
	enough := func() {
		if done.CompareAndSwap(false, true) {
			close(all)
		}
	}
	if info.NumPending == 0 {
		enough()
	}
	consuming, err := c.Consume(func(m jetstream.Msg) {
		saw(m, !done.Load())
		if done.Load() {
			return
		}
		if meta, err := m.Metadata(); err == nil {
			if has.Store(meta.Sequence.Consumer); meta.NumPending == 0 {
				enough()
			}
		}
	})
	if err != nil {
		return nil, err
	}
	b.background(func(ctx context.Context) {
		defer consuming.Stop()
		look := time.NewTicker(lookAtConsumer)
		defer look.Stop()
		for {
			select {
			case <-all:
				<-ctx.Done()
				return
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if now, err := c.Info(ctx); err == nil && now.NumPending == 0 && now.Delivered.Consumer <= has.Load() {
				enough()
			}
		}
	})
	return all, nil
}
