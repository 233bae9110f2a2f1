package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/server"
)

// PROTOCOL.md §2: inbox copies are kept 7 days where nobody says otherwise. What somebody has said
// holds for a node that is started without saying.
func TestInboxAge(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for _, step := range []struct{ said, want time.Duration }{
		{0, 7 * 24 * time.Hour}, {2 * time.Hour, 2 * time.Hour}, {0, 2 * time.Hour}, {30 * 24 * time.Hour, 30 * 24 * time.Hour},
	} {
		n, err := server.Start(ctx, server.Options{Data: data, Listen: "127.0.0.1:-1", InboxAge: step.said})
		testkit.Must(t, err)
		login, err := nats.NkeyOptionFromSeed(data + "/" + server.BrokerSeed)
		testkit.Must(t, err)
		nc, err := nats.Connect(n.URL, login)
		testkit.Must(t, err)
		js, err := jetstream.New(nc)
		testkit.Must(t, err)
		s, err := js.Stream(ctx, api.InboxStream)
		testkit.Must(t, err)
		if got := s.CachedInfo().Config.MaxAge; got != step.want {
			t.Errorf("told %s, inbox copies are kept %s, want %s", step.said, got, step.want)
		}
		nc.Close()
		testkit.Must(t, n.Close(ctx))
	}
}
