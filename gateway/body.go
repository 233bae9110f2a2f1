package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/parley-asp/parley/session"
)

// MaxBody is the largest body of a request, more than the largest envelope (PROTOCOL.md §3).
const MaxBody = 300 << 10

// ReadBody reads the body of the caller's request. It refuses one of more than MaxBody bytes. A large one is
// worked on when it is the caller's turn, until the broker is asked or the request is over.
func (c Caller) ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, session.RefuseTooLarge(MaxBody, "a body has at most %d bytes here", MaxBody)
	}
	if err != nil {
		return nil, err
	}
	return data, c.TakeTurn(r.Context(), len(data))
}

// TakeTurn waits until a request of so many bytes may be worked on, and holds them as buffered until it is over.
// One that came over a stream is a Page of it.
func (c Caller) TakeTurn(ctx context.Context, size int) error {
	m := meterOf(ctx)
	if m == nil || c.service == nil {
		return nil
	}
	large := c.service.Accounts.LargeRead(size)
	if large == nil {
		return nil
	}
	release, err := c.Buffer(size)
	if err != nil {
		return err
	}
	wait, _ := large.Join(c.Agent) // has room for all
	slot, err := wait(ctx)
	if err != nil {
		release()
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held, m.slot = append(m.held, release), slot
	return nil
}
