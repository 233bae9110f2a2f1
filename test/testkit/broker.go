// Package testkit starts what tests run against: a real NATS server on disk, brokers on it,
// and principals who speak to them as plain NATS clients.
//
//	w := testkit.NewWorld(t, testkit.Options{})
//	alpha, beta := w.Principal("agent://acme.com/alpha"), w.Principal("agent://widgets.co/beta")
//	id := w.Open(alpha, beta)
//	beta.Say(id, &performatives.ObserveBody{Subject: "hello"})
//	testkit.Refused(t, alpha.Submit(id, []byte("{")), session.MalformedEnvelope)
//
// Everything ends with the test. Nothing here mocks NATS, and only [Eventually] pauses.
package testkit

import (
	"cmp"
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
)

// Options say what a broker runs. The zero Options are an embedded server on a free port, in a
// temporary directory, with logins and an fsync before each answer.
type Options = server.Options

// Configured are the Options of a broker on a NATS server in a process of its own, in config mode.
func Configured(t testing.TB) Options {
	t.Helper()
	return Sharded(t, Shards)
}

// Sharded are those, with a number of shards.
func Sharded(t testing.TB, shards int) Options {
	t.Helper()
	data := t.TempDir()
	config, err := server.Config(data, shards)
	Must(t, err)
	return Options{Data: data, NATS: StartServerProcess(t, config).URL(), Shards: shards}
}

// A Broker is a node in this process, on its own data directory. Down and Up restart it on the
// same data and addresses; Crash takes its server away first.
type Broker struct {
	*server.Server
	Data string

	t       testing.TB
	options Options
	up      bool
}

// StartBroker starts a broker and stops it with the test.
func StartBroker(t testing.TB, o Options) *Broker {
	t.Helper()
	if o.Data == "" {
		o.Data = t.TempDir()
	}
	if o.Listen == "" && o.NATS == "" {
		o.Listen = "127.0.0.1:-1"
	}
	b := &Broker{t: t, options: o, Data: o.Data}
	b.Up()
	t.Cleanup(b.Down)
	return b
}

// Up starts the broker, again after Down or Crash.
func (b *Broker) Up() {
	b.t.Helper()
	o := b.options
	o.Shards = cmp.Or(o.Shards, Shards)
	if b.Server != nil {
		o.HTTP = b.HTTPAddr
		if o.NATS == "" {
			_, o.Listen, _ = strings.Cut(b.URL, "://")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	var n *server.Server
	var err error
	Until(ctx, func() bool {
		n, err = server.Start(ctx, o)
		// A connection that somebody made meanwhile may have the port for a while.
		return b.Server == nil || err == nil || !strings.Contains(err.Error(), "address already in use")
	})
	Must(b.t, err)
	b.Server, b.up = n, true
}

// Configure changes the options of the next start.
func (b *Broker) Configure(change func(*Options)) { change(&b.options) }

// Down stops the broker in order.
func (b *Broker) Down() {
	b.t.Helper()
	if !b.up {
		return
	}
	b.up = false
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		b.t.Error(err)
	}
}

// Crash takes the embedded server away while the broker uses it.
func (b *Broker) Crash() {
	b.up = false
	b.Server.Crash()
}

// Register adds a principal with a new key, as an operator would.
func (b *Broker) Register(a performatives.Agent, change ...func(*api.Card)) nkeys.KeyPair {
	b.t.Helper()
	key := NewKey(b.t)
	card := api.Card{Agent: a, Key: performatives.Key(Public(b.t, key)), LoginKeys: LoginKeys(b.t, key)}
	card.Registry.MayDecide = a.IsHuman()
	for _, c := range change {
		c(&card)
	}
	_, err := b.Broker.Parts.Registry.Add(context.Background(), card)
	Must(b.t, err)
	return key
}

// Plain is a NATS connection with no code of ours, as anybody would make one.
func (b *Broker) Plain(options ...nats.Option) *nats.Conn {
	b.t.Helper()
	nc, err := nats.Connect(b.URL, append([]nats.Option{nats.Timeout(Patience)}, options...)...)
	Must(b.t, err)
	b.t.Cleanup(nc.Close)
	return nc
}
