// Package testbroker starts a real broker on a real NATS server, in process and
// on disk, for tests: it is there in milliseconds and gone with the test.
package testbroker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/archive"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/notify"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
)

// Options say what is started; the zero Options are a broker with logins.
type Options struct {
	Dev     bool
	Sync    time.Duration // 0 is fsync always
	Policy  performatives.Policy
	Limits  broker.Limits
	Archive archive.Policy
	Rules   *escalation.Rules
	Notify  *notify.Config
	HTTP    bool             // also the pages, on loopback
	Now     func() time.Time // the broker's clock; nil is time.Now
	Data    string           // "" is a temporary folder
	Verbose bool             // log to the test
	Log     *zap.Logger      // where else to log; nil is nowhere
}

// A Broker under test. Down and Up take it through a restart on the same data
// and address; Node.Crash before Up makes it a crash.
type Broker struct {
	*server.Server
	Data string

	t       testing.TB
	options Options
	up      bool
}

// Start starts a broker and stops it with the test.
func Start(t testing.TB, o Options) *Broker {
	t.Helper()
	b := &Broker{t: t, options: o, Data: o.Data}
	if b.Data == "" {
		b.Data = t.TempDir()
	}
	b.Up()
	t.Cleanup(b.Down)
	return b
}

// Up starts it, again after a Down or a Crash.
func (b *Broker) Up() {
	b.t.Helper()
	listen, pages := "127.0.0.1:-1", ""
	if b.options.HTTP {
		pages = "127.0.0.1:0"
	}
	if b.Server != nil {
		listen, pages = strings.TrimPrefix(b.URL, "nats://"), b.HTTPAddr
	}
	log := b.options.Log
	if b.options.Verbose {
		log = zaptest.NewLogger(b.t)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	n, err := server.Start(ctx, server.Options{
		Data: b.Data, Listen: listen, HTTP: pages, Dev: b.options.Dev, Sync: b.options.Sync, Policy: b.options.Policy, Limits: b.options.Limits,
		Log: log, Now: b.options.Now, Rules: b.options.Rules, Archive: b.options.Archive, Notify: b.options.Notify,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Server, b.up = n, true
}

// Down stops it cleanly.
func (b *Broker) Down() {
	if !b.up {
		return
	}
	b.up = false
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		b.t.Error(err)
	}
}

// Crash takes the server away under the broker.
func (b *Broker) Crash() {
	b.up = false
	b.Server.Crash()
}

// Register adds a principal with a new key, as an operator would.
func (b *Broker) Register(a performatives.Agent, change ...func(*api.Card)) nkeys.KeyPair {
	b.t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		b.t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		b.t.Fatal(err)
	}
	card := api.Card{Agent: a, Key: performatives.Key(public)}
	card.Registry.MayDecide = a.IsHuman()
	for _, c := range change {
		c(&card)
	}
	if _, err := b.AddAgent(context.Background(), card); err != nil {
		b.t.Fatal(err)
	}
	return key
}

// Plain is a NATS connection with no code of ours, as a stranger would make one.
func (b *Broker) Plain(options ...nats.Option) *nats.Conn {
	b.t.Helper()
	nc, err := nats.Connect(b.URL, append([]nats.Option{nats.Timeout(time.Minute)}, options...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(nc.Close)
	return nc
}
