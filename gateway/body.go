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
// worked on in a slot, until the broker is asked or the client is answered.
func (c Caller) ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, session.RefuseTooLarge(MaxBody, "a body has at most %d bytes here", MaxBody)
	}
	if err != nil {
		return nil, err
	}
	return data, c.EnterSlot(r.Context(), len(data))
}

// EnterSlot waits for a slot to work on a request of so many bytes, if that is large, and holds these as buffered
// until the request is over. One that came over a stream is a Page of it.
func (c Caller) EnterSlot(ctx context.Context, size int) error {
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
