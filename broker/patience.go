package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// A cluster that starts, or elects leaders, has no JetStream for a while. A
// broker that starts then waits for it, and says so.
const (
	askAgain  = 250 * time.Millisecond
	sayAgain  = 10 * time.Second
	noPeers   = 10005 // fewer servers than replicas are up
	serverOut = 503   // what the server says of all that comes back by itself
)

// patiently does one step of the start, again while JetStream is away.
func (b *Broker) patiently(ctx context.Context, what string, do func(context.Context) error) error {
	// A request that nobody heard is asked again, so it must not wait as long as
	// all may take: without a deadline each has one of its own.
	one, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	var said time.Time
	for {
		err := do(one)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case !away(err):
			return err
		}
		if now := b.Now(); now.Sub(said) >= sayAgain {
			said = now
			b.Log.Warn("waiting for JetStream", zap.String("for", what), zap.Error(err))
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// away tells of an error that JetStream is not there now: there is no leader,
// too few servers are up, nobody answers. It goes away by itself; what a
// request was wrong about does not.
func away(err error) bool {
	var refused *jetstream.APIError
	if errors.As(err, &refused) {
		return refused.Code == serverOut || refused.ErrorCode == noPeers
	}
	for _, gone := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected,
		nats.ErrReconnectBufExceeded, jetstream.ErrNoStreamResponse,
	} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}
