package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/server/embedded"
	"github.com/parley-asp/parley/server/login"
	"github.com/parley-asp/parley/test/natskit"
)

// A restart finds what is stored, with and without logins, and with another issuer.
func TestStreamsSurviveARestart(t *testing.T) {
	broker := natskit.NewKey(t)
	authority := logins(t)
	o := embedded.Options{
		StoreDir: t.TempDir(), Listen: "127.0.0.1:0", Broker: natskit.Public(t, broker), Callout: natskit.Public(t, natskit.NewKey(t)), Authority: authority,
	}
	for round := range uint64(5) {
		func() {
			o.Dev = round%2 == 0
			if round == 3 {
				authority = logins(t)
				o.Authority = authority
			}
			server, err := embedded.Start(o)
			natskit.Must(t, err)
			defer server.Shutdown()
			how := natskit.Bare(t, broker)
			if !o.Dev {
				how, err = authority.LogIn(login.BrokerAccount, "broker", broker)
				natskit.Must(t, err)
			}
			nc, err := nats.Connect(server.ClientURL(), server.InProcess(), how)
			natskit.Must(t, err)
			defer nc.Close()
			js, err := jetstream.New(nc)
			natskit.Must(t, err)
			stream, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "ASP_SESSIONS", Subjects: []string{"asp.session.*"}})
			natskit.Must(t, err)
			if got := stream.CachedInfo().State.Msgs; got != round {
				t.Fatalf("round %d begins with %d messages", round, got)
			}
			_, err = js.Publish(t.Context(), "asp.session.s1", nil)
			natskit.Must(t, err)
		}()
	}
}

// Clients that log in while the server shuts down are cut off: nothing panics.
func TestLoginsDuringShutdown(t *testing.T) {
	t.Parallel()
	w := start(t, false)
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var logins atomic.Int64
	for range 16 {
		clients.Go(func() {
			for ctx.Err() == nil {
				if nc, err := nats.Connect(w.server.ClientURL(), natskit.Bare(t, w.keys[alice])); err == nil {
					logins.Add(1)
					nc.Close()
				}
			}
		})
	}
	natskit.Eventually(t, "clients log in", func() bool { return logins.Load() > 50 })
	w.server.Shutdown()
	stop()
	clients.Wait()
}

// The broker itself answers too_large, so a large envelope must reach it (PROTOCOL.md §3).
func TestTooLargeReachesTheBroker(t *testing.T) {
	w := start(t, true)
	_, err := w.broker.Subscribe("asp.agent.*.submit.*", func(m *nats.Msg) {
		if err := m.Respond([]byte("too_large")); err != nil {
			t.Error(err)
		}
	})
	natskit.Must(t, err)
	natskit.Must(t, w.broker.Flush())
	res, err := w.connect().RequestWithContext(w.ctx, "asp.agent."+alice+".submit.s1", bytes.Repeat([]byte("x"), 1<<20-1024))
	natskit.Must(t, err)
	if string(res.Data) != "too_large" {
		t.Fatalf("got %q", res.Data)
	}
}

func TestStartFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	natskit.Must(t, err)
	defer func() { natskit.Must(t, taken.Close()) }()
	for name, spoil := range map[string]func(*embedded.Options){
		"address in use":          func(o *embedded.Options) { o.Listen = taken.Addr().String() },
		"no port":                 func(o *embedded.Options) { o.Listen = "127.0.0.1" },
		"no store":                func(o *embedded.Options) { o.StoreDir = "" },
		"store is a file":         func(o *embedded.Options) { o.StoreDir = "embedded_test.go" },
		"no broker key":           func(o *embedded.Options) { o.Broker = "" },
		"no callout key":          func(o *embedded.Options) { o.Callout = "" },
		"callout key is broker's": func(o *embedded.Options) { o.Callout = o.Broker },
		"no authority":            func(o *embedded.Options) { o.Authority = nil },
	} {
		t.Run(name, func(t *testing.T) {
			o := embedded.Options{
				StoreDir: t.TempDir(), Listen: "127.0.0.1:0",
				Broker: natskit.Public(t, natskit.NewKey(t)), Callout: natskit.Public(t, natskit.NewKey(t)), Authority: logins(t),
			}
			spoil(&o)
			server, err := embedded.Start(o)
			if err == nil {
				server.Shutdown()
				t.Fatal("it started")
			}
			if errors.Is(err, embedded.ErrNotLoopback) {
				t.Fatal(err)
			}
			t.Log(err)
		})
	}
}
