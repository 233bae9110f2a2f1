package testkit

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
)

// Repeats is how often a request is made again that was refused as unavailable, where a test states no
// bound of its own: some 4 seconds long. A broker may be isolated for a moment on a slow machine, and
// serves a second after its heartbeat is acknowledged. One that refuses more is broken.
const Repeats = 25

// Available asks until it is not refused as unavailable, at most bound times again.
func Available(ctx context.Context, bound int, ask func() (available bool)) error {
	asked, available := 0, false
	err := Until(ctx, func() bool {
		available = ask()
		asked++
		return available || asked > bound
	})
	if err == nil && !available {
		err = fmt.Errorf("unavailable %d times", asked)
	}
	return err
}

// Request sends a request that somebody must answer, the same bytes again while the broker is
// unavailable, at most [Repeats] times.
func Request(nc *nats.Conn, subject string, data []byte) (*nats.Msg, error) {
	return RequestAgain(nc, Repeats, subject, data)
}

// RequestAgain is [Request] with a bound of its own.
func RequestAgain(nc *nats.Conn, bound int, subject string, data []byte) (m *nats.Msg, err error) {
	unavailable := Available(context.Background(), bound, func() bool {
		m, err = nc.Request(subject, data, Patience)
		return err != nil || m.Header.Get(api.ErrorCodeHeader) != fmt.Sprint(session.Unavailable.Status())
	})
	if err == nil {
		err = unavailable
	}
	return m, err
}

// Do makes a request over HTTP and reads its answer, again while the broker is unavailable, at most
// [Repeats] times.
func Do(t testing.TB, request func() *http.Request) (answer Answer) {
	t.Helper()
	Must(t, Available(t.Context(), Repeats, func() bool {
		response, err := http.DefaultClient.Do(request())
		Must(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		Must(t, err)
		answer = Answer{t, response.StatusCode, response.Header, body}
		return answer.StatusCode != http.StatusServiceUnavailable
	}))
	return answer
}

// An Answer is what HTTP answered.
type Answer struct {
	testing.TB
	StatusCode int
	Header     http.Header
	Body       []byte
}
