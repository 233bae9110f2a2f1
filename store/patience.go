package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/internal/background"
)

// A cluster that starts, or elects leaders, has no JetStream for a while.
const (
	retryAfter = 250 * time.Millisecond
	warnEvery  = 10 * time.Second
	noPeers    = 10005 // API error: fewer servers than replicas are up
	noLeader   = 503   // API status of all that recovers by itself
)

// Patiently does one step of a start, again while JetStream is not available,
// and logs that it waits.
func (s *Store) Patiently(ctx context.Context, what string, do func(context.Context) error) error {
	// JetStream requests without a deadline get the library's own short one, so
	// that a request that nobody received is sent again.
	attempt, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	var warned time.Time
	for {
		err := do(attempt)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case !IsUnavailable(err):
			return err
		}
		if now := time.Now(); now.Sub(warned) >= warnEvery {
			warned = now
			text := "waiting for JetStream"
			if refused, ok := errors.AsType[*jetstream.APIError](err); ok && refused.ErrorCode == noPeers {
				text = "waiting for NATS servers: fewer are there than replicas"
			}
			s.o.Log.Warn(text, zap.String("for", what), zap.Error(err))
		}
		if err := background.Pause(ctx, retryAfter); err != nil {
			return err
		}
	}
}

// repliesWithin is how long a server takes to say that a stream exists, which it created when another broker asked.
const repliesWithin = 500 * time.Millisecond

// create creates a stream or a bucket, or updates it. Of several brokers that create one at once, a cluster answers
// only one: the others ask again.
func create[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	soon, cancel := context.WithTimeout(ctx, repliesWithin)
	defer cancel()
	made, err := ask(soon)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return ask(ctx)
	}
	return made, err
}

// IsUnavailable reports errors that go away by themselves: there is no leader, too
// few servers are up, nobody answers.
func IsUnavailable(err error) bool {
	var refused *jetstream.APIError
	if errors.As(err, &refused) {
		return refused.Code == noLeader || refused.ErrorCode == noPeers
	}
	for _, passing := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected,
		nats.ErrReconnectBufExceeded, jetstream.ErrNoStreamResponse,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// IsDisabled reports errors of a server, or an account, without JetStream.
func IsDisabled(err error) bool {
	return errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount)
}
