package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
)

// Refused matches refusals with this code, for errors.Is:
//
//	if errors.Is(err, client.Refused(session.OwnProposal)) { … }
func Refused(code session.Code) error { return &session.Refusal{Code: code} }

// insist sends a request until it is answered or the context ends, the same bytes
// each time. The error is a refusal, or says why there was no answer; maybe says whether
// an attempt may have been accepted: its answer did not come, or said that the broker
// does not know.
func (l *link) insist(ctx context.Context, subject string, data []byte) (reply []byte, maybe bool, err error) {
	if l.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.limit)
		defer cancel()
	}
	for attempt := 0; ; attempt++ {
		// A server that came back just now may have nobody yet to answer, and not
		// say so: the first time is the shortest.
		patience := min(time.Second<<min(attempt, 10), l.timeout)
		reply, err = l.once(ctx, subject, data, patience)
		maybe = maybe || err != nil && !denied(err)
		if err == nil || !worthAsking(err) {
			return reply, maybe, err
		}
		if ctx.Err() != nil {
			return nil, maybe, ended(ctx, err)
		}
		l.log.Debug("asking again", slog.String("subject", subject), slog.Int("attempt", attempt+1), slog.Any("error", err))
		select {
		case <-time.After(max(pause(attempt), retryAfter(err))):
		case <-ctx.Done():
			return nil, maybe, ended(ctx, err)
		}
	}
}

// once sends a request and waits a while for the answer.
func (l *link) once(ctx context.Context, subject string, data []byte, patience time.Duration) ([]byte, error) {
	if err := l.connected(ctx); err != nil {
		return nil, err
	}
	one, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	one, stop := l.waiting.watch(one, subject)
	defer stop()
	return l.request(one, subject, data)
}

// request sends a request and waits for its answer, on whatever the connection
// is by then.
func (l *link) request(one context.Context, subject string, data []byte) ([]byte, error) {
	if l.http != nil {
		return l.http.Request(one, subject, data)
	}
	reply, err := l.nc.RequestMsgWithContext(one, &nats.Msg{Subject: subject, Header: traced(one), Data: data})
	switch {
	case errors.Is(err, nats.ErrConnectionClosed):
		return nil, ErrClosed
	case err != nil:
		return nil, why(one, err)
	case reply.Header.Get(api.ErrorCodeHeader) == "":
		return reply.Data, nil
	}
	var refused api.ErrorReply
	if err := json.Unmarshal(reply.Data, &refused); err != nil || refused.Error.Code == "" {
		return nil, fmt.Errorf("client: the service answered %s: %s",
			reply.Header.Get(api.ErrorCodeHeader), reply.Header.Get(api.ErrorHeader))
	}
	return nil, refused.Refusal()
}

// mostPatient bounds how long the client waits at a broker's word.
const mostPatient = 30 * time.Second

// retryAfter is when a broker that was asked too much wants to be asked again.
func retryAfter(err error) time.Duration {
	refusal, ok := errors.AsType[*session.Refusal](err)
	if !ok || refusal.Code != session.RateLimited {
		return 0
	}
	details, _ := refusal.Details.(jsontext.Value) // as [api.ErrorReply.Refusal] leaves it
	var limited api.Limited
	if err := json.Unmarshal(details, &limited); err != nil {
		return 0
	}
	return max(0, min(time.Duration(limited.RetryAfter)*time.Millisecond, mostPatient))
}

// denied reports whether an attempt was not accepted for certain. The broker refuses as unavailable
// also where it does not know.
func denied(err error) bool {
	refusal, refused := errors.AsType[*session.Refusal](err)
	return refused && refusal.Code != session.Unavailable || errors.Is(err, nats.ErrPermissionViolation)
}

// worthAsking reports whether the same request may be answered otherwise later.
func worthAsking(err error) bool {
	if refusal, ok := errors.AsType[*session.Refusal](err); ok {
		return refusal.Code == session.Unavailable || refusal.Code == session.RateLimited
	}
	for _, passing := range []error{
		nats.ErrTimeout, context.DeadlineExceeded, nats.ErrNoResponders, nats.ErrDisconnected,
		nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// ended reports that the context ended and, where it says more, what the last
// answer or failure was.
func ended(ctx context.Context, last error) error {
	if errors.Is(last, ctx.Err()) {
		return ctx.Err()
	}
	return fmt.Errorf("%w; asked until %w", last, ctx.Err())
}
