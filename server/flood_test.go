package server_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// Who sends very much that nobody could answer, or that NATS answers by itself, is disconnected, and not let in for a
// while. Others are served.
func TestFloodIsDisconnected(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o server.Options) {
		o.Limits.Useless = 500
		w := start(t, o)
		other := w.logsIn(beta, w.registers(beta))
		for n, subject := range []string{
			"asp.agent.T.api.session.list", "$JS.API.CONSUMER.INFO.ASP_INBOX.T", "$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX.T", "$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX.T+3",
		} {
			flooder := performatives.Agent(fmt.Sprintf("%s-%d", alpha, n))
			keys := w.registers(flooder)
			l := w.logsIn(flooder, keys)
			for range 5_000 { // the broker counts by the second
				if l.Publish(strings.Replace(subject, ".T", "."+flooder.Token(), 1), nil) != nil {
					break
				}
			}
			testkit.Cut(t, l)
			if again, err := w.dial(flooder, testkit.Login(t, keys)); !errors.Is(err, nats.ErrAuthorization) {
				again.Close()
				t.Errorf("after a flood of %s it logs in again: %v", subject, err)
			}
		}
		w.asks(other, beta)
	})
}
