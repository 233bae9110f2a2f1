package embedded_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/server/embedded"
	"github.com/parley-asp/parley/server/login"
	"github.com/parley-asp/parley/test/natskit"
)

const (
	alice = "acme_com~alice"
	bob   = "globex_com~sales~bob"
)

// world is a running server and the broker's connection to it.
type world struct {
	t      *testing.T
	ctx    context.Context
	server *embedded.Server
	store  string                   // its files
	keys   map[string]nkeys.KeyPair // who is registered, by name
	owner  nkeys.KeyPair            // the broker's key
	broker *nats.Conn
	js     jetstream.JetStream // the broker's

	authority *login.Authority
	fsyncs    atomic.Int32 // that the server made
	said      *observer.ObservedLogs
	floods    chan string // who floods
}

// own logs in as the only user of one of parley's accounts.
func (w *world) own(account string, key nkeys.KeyPair) nats.Option {
	w.t.Helper()
	option, err := w.authority.LogIn(account, "own", key)
	natskit.Must(w.t, err)
	return option
}

func start(t *testing.T, dev bool) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), natskit.Patience)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, floods: make(chan string, 1), store: t.TempDir(), owner: natskit.NewKey(t), keys: map[string]nkeys.KeyPair{
		alice: natskit.NewKey(t), bob: natskit.NewKey(t), login.OperatorName: natskit.NewKey(t),
	}}
	callout := natskit.NewKey(t)
	core, said := observer.New(zap.WarnLevel)
	w.said = said
	var err error
	var issuer nkeys.KeyPair
	w.authority, issuer = natskit.NewLogins(t)
	w.server, err = embedded.Start(embedded.Options{
		StoreDir: w.store, Listen: "127.0.0.1:0", Dev: dev, Unread: 8 << 20, Sent: 10_000, Flooded: func(name string) { w.floods <- name },
		Broker: natskit.Public(t, w.owner), Callout: natskit.Public(t, callout), Authority: w.authority,
		Log: zaptest.NewLogger(t, zaptest.WrapOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return zapcore.NewTee(c, core) }))), Fsynced: func(time.Duration) { w.fsyncs.Add(1) },
	})
	natskit.Must(t, err)
	t.Cleanup(w.server.Shutdown)
	if dev {
		w.broker = w.connect(natskit.Bare(t, w.owner), w.server.InProcess())
	} else {
		w.broker = w.connect(w.own(login.BrokerAccount, w.owner), w.server.InProcess())
	}
	w.js, err = jetstream.New(w.broker)
	natskit.Must(t, err)
	if !dev {
		nc := w.connect(w.own(login.CalloutAccount, callout), w.server.InProcess())
		stop, err := login.Serve(nc, issuer, w.lookup, nil, zaptest.NewLogger(t))
		natskit.Must(t, err)
		t.Cleanup(stop)
	}
	return w
}

func (w *world) lookup(publicKey string) (login.Identity, bool) {
	for name, key := range w.keys {
		if pub, err := key.PublicKey(); err != nil || pub != publicKey {
			continue
		}
		if name == login.OperatorName {
			return login.Identity{Name: name, Role: login.Operator}, true
		}
		return login.Identity{Name: name, Role: login.Principal}, true
	}
	return login.Identity{}, false
}

// as logs in with the key that is registered for a name.
func (w *world) as(name string) *nats.Conn {
	w.t.Helper()
	return w.connect(natskit.Bare(w.t, w.keys[name]), nats.CustomInboxPrefix("_INBOX."+name))
}

func (w *world) connect(opts ...nats.Option) *nats.Conn {
	w.t.Helper()
	nc, err := w.dial(opts...)
	natskit.Must(w.t, err)
	return nc
}

func (w *world) dial(opts ...nats.Option) (*nats.Conn, error) {
	silent := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}) // allowed looks at LastError
	nc, err := nats.Connect(w.server.ClientURL(), append(opts, nats.Timeout(natskit.Patience), silent)...)
	if err == nil {
		w.t.Cleanup(nc.Close)
	}
	return nc, err
}

// echo answers on a subject in ASP with the subject that arrived there.
func (w *world) echo(subject string) {
	w.t.Helper()
	_, err := w.broker.Subscribe(subject, func(m *nats.Msg) {
		if m.Reply == "" {
			return
		}
		if err := m.Respond([]byte(m.Subject)); err != nil {
			w.t.Error(err)
		}
	})
	natskit.Must(w.t, err)
	natskit.Must(w.t, w.broker.Flush())
}

// asks sends a request for echo to answer.
func (w *world) asks(nc *nats.Conn, subject string) {
	w.t.Helper()
	res, err := nc.RequestWithContext(w.ctx, subject, []byte("?"))
	if err != nil {
		w.t.Fatalf("%s: %v", subject, err)
	}
	if string(res.Data) != subject {
		w.t.Fatalf("%s: the broker saw it as %s", subject, res.Data)
	}
}

// streams makes the transcript and inbox streams, with a consumer and a message for each name.
func (w *world) streams(names ...string) {
	w.t.Helper()
	for stream, subject := range map[string]string{"ASP_SESSIONS": "asp.session.*", "ASP_INBOX": "asp.agent.*.inbox.*"} {
		_, err := w.js.CreateStream(w.ctx, jetstream.StreamConfig{Name: stream, Subjects: []string{subject}})
		natskit.Must(w.t, err)
	}
	for _, name := range names {
		_, err := w.js.CreateConsumer(w.ctx, "ASP_INBOX", jetstream.ConsumerConfig{
			Durable: name, FilterSubject: "asp.agent." + name + ".inbox.*", AckPolicy: jetstream.AckExplicitPolicy,
		})
		natskit.Must(w.t, err)
		w.deliver(name)
	}
}

func (w *world) deliver(name string) {
	w.t.Helper()
	_, err := w.js.Publish(w.ctx, "asp.agent."+name+".inbox.s1", []byte("for "+name))
	natskit.Must(w.t, err)
}

// reads fetches one message from its own inbox with the JetStream client and acknowledges it.
func (w *world) reads(nc *nats.Conn, name string, ack func(jetstream.Msg) error) {
	w.t.Helper()
	js, err := jetstream.New(nc)
	natskit.Must(w.t, err)
	inbox, err := js.Consumer(w.ctx, "ASP_INBOX", name)
	natskit.Must(w.t, err)
	batch, err := inbox.Fetch(1, jetstream.FetchMaxWait(natskit.Patience))
	natskit.Must(w.t, err)
	msg, ok := <-batch.Messages()
	if !ok {
		w.t.Fatalf("%s has no message: %v", name, batch.Error())
	}
	if want := "for " + name; string(msg.Data()) != want {
		w.t.Fatalf("got %q, want %q", msg.Data(), want)
	}
	natskit.Must(w.t, ack(msg))
}

// next waits for a message that must come.
func next(t *testing.T, sub *nats.Subscription) *nats.Msg {
	t.Helper()
	msg, err := sub.NextMsg(natskit.Patience)
	natskit.Must(t, err)
	return msg
}

func subscribe(t *testing.T, nc *nats.Conn, subject string) *nats.Subscription {
	t.Helper()
	sub, err := nc.SubscribeSync(subject)
	natskit.Must(t, err)
	natskit.Must(t, nc.Flush())
	return sub
}

// publishes and subscribes report whether the server permits it. The server's error arrives
// before the reply to the flush.
func publishes(t *testing.T, nc *nats.Conn, subject string) bool {
	t.Helper()
	natskit.Must(t, nc.Publish(subject, nil))
	return natskit.Allowed(t, nc)
}

func subscribes(t *testing.T, nc *nats.Conn, subject string) bool {
	t.Helper()
	_, err := nc.SubscribeSync(subject)
	natskit.Must(t, err)
	return natskit.Allowed(t, nc)
}

func logins(t *testing.T) *login.Authority {
	t.Helper()
	authority, _ := natskit.NewLogins(t)
	return authority
}
