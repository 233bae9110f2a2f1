package embedded_test

import (
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
)

// All connections of a user are closed, however many pages the server lists them on, and
// nobody else's.
func TestDisconnect(t *testing.T) {
	w := start(t, true)
	var open sync.WaitGroup
	for range 1_100 { // a page is 1,024
		open.Add(1)
		w.connect(w.server.InProcess(), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { open.Done() }))
	}
	must(t, w.server.Disconnect("nobody"))
	must(t, w.server.Disconnect("dev"))
	open.Wait()
	must(t, w.broker.Flush())
	if w.broker.Stats().Reconnects > 0 {
		t.Error("the broker was disconnected too")
	}
}
