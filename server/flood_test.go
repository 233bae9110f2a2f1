package server_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// Who sends very much that nobody could answer is disconnected, and not let in for a while. Others are served.
func TestFloodIsDisconnected(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o server.Options) {
		o.Limits.Useless = 500
		w := start(t, o)
		keys := testkit.NewKey(t)
		w.gives(alpha, keys)
		other := w.logsIn(beta, w.registers(beta))
		l := w.logsIn(alpha, keys)
		for range 5_000 { // the broker counts by the second
			if l.Publish(api.Call(alpha, api.SessionList.Name), nil) != nil {
				break
			}
		}
		testkit.Cut(t, l)
		if again, err := w.dial(alpha, testkit.Login(t, keys)); !errors.Is(err, nats.ErrAuthorization) {
			again.Close()
			t.Errorf("it logs in again: %v", err)
		}
		w.asks(other, beta)
	})
}
