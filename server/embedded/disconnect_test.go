package embedded_test

import (
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/test/natskit"
)

// Disconnect closes all connections of a user, over several pages of the server's list, and no
// others.
func TestDisconnect(t *testing.T) {
	w := start(t, true)
	var open sync.WaitGroup
	for range 1_100 { // a page is 1,024
		open.Add(1)
		w.connect(w.server.InProcess(), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { open.Done() }))
	}
	natskit.Must(t, w.server.Disconnect("nobody"))
	natskit.Must(t, w.server.Disconnect("dev"))
	open.Wait()
	natskit.Must(t, w.broker.Flush())
	if w.broker.Stats().Reconnects > 0 {
		t.Error("the broker was disconnected too")
	}
}
