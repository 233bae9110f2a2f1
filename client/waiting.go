package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// waiting are the requests under way. Two things end them early: the connection
// breaks, and the answer with it; or the server does not let the login publish
// them, which it says aside.
type waiting struct {
	mu       sync.Mutex
	requests map[*request]bool
}

type request struct {
	subject string
	fail    context.CancelCauseFunc
}

// watch is a context that also ends when one of these happens to a request on
// the subject; why tells.
func (w *waiting) watch(ctx context.Context, subject string) (watched context.Context, stop func()) {
	watched, fail := context.WithCancelCause(ctx)
	r := &request{subject, fail}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.requests == nil {
		w.requests = map[*request]bool{}
	}
	w.requests[r] = true
	return watched, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.requests, r)
		fail(nil)
	}
}

// why is the cause for which a watched context ended, else the error as it is.
func why(watched context.Context, err error) error {
	if cause := context.Cause(watched); errors.Is(err, context.Canceled) && cause != nil {
		return cause
	}
	return err
}

// broken fails all requests: their answers went with the connection.
func (w *waiting) broken() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.requests {
		r.fail(nats.ErrDisconnected)
	}
}

// denied takes what the server says aside, and fails the requests it is about.
func (w *waiting) denied(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	_, quoted, _ := strings.Cut(err.Error(), `Publish to "`)
	subject, _, _ := strings.Cut(quoted, `"`)
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.requests {
		if r.subject == subject {
			r.fail(fmt.Errorf("client: this login may not publish on %s; is the key another principal's? %w", subject, nats.ErrPermissionViolation))
		}
	}
}
