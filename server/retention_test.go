package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// PROTOCOL.md §2: inbox copies are kept for 7 days by default. A server started
// without a retention keeps the store's.
func TestInboxAge(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for _, step := range []struct{ option, want time.Duration }{
		{0, 7 * 24 * time.Hour}, {2 * time.Hour, 2 * time.Hour}, {0, 2 * time.Hour}, {30 * 24 * time.Hour, 30 * 24 * time.Hour},
	} {
		n, err := server.Start(ctx, server.Options{Data: data, Listen: "127.0.0.1:-1", InboxAge: step.option})
		testkit.Must(t, err)
		login, err := nats.NkeyOptionFromSeed(data + "/" + server.BrokerLogin)
		testkit.Must(t, err)
		nc, err := nats.Connect(n.URL, login)
		testkit.Must(t, err)
		js, err := jetstream.New(nc)
		testkit.Must(t, err)
		s, err := js.Stream(ctx, api.InboxStream)
		testkit.Must(t, err)
		if got := s.CachedInfo().Config.MaxAge; got != step.want {
			t.Errorf("with InboxAge %s, inbox copies are kept %s, want %s", step.option, got, step.want)
		}
		nc.Close()
		testkit.Must(t, n.Close(ctx))
	}
}
