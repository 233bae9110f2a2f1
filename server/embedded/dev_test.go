package embedded_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/server/embedded"
	"github.com/parley-asp/parley/test/natskit"
)

// In development any loopback client may act as anyone (PROTOCOL.md §10).
func TestDevAnyoneIsAnyone(t *testing.T) {
	w := start(t, true)
	w.echo("asp.agent.*.submit.*")
	w.echo("asp.agent.*.api.*.*")
	w.echo("asp.operator.>")
	for name, how := range map[string][]nats.Option{
		"no credentials":  nil,
		"own inboxes":     {nats.CustomInboxPrefix("mine")},
		"an unknown nkey": {natskit.Bare(t, natskit.NewKey(t))},
		"a password":      {nats.UserInfo("someone", "secret")},
		"a token":         {nats.Token("secret")},
		"in process":      {w.server.InProcess()},
	} {
		t.Run(name, func(t *testing.T) {
			nc := w.connect(how...)
			for _, token := range []string{alice, bob} {
				w.asks(nc, "asp.agent."+token+".submit.s1")
				w.asks(nc, "asp.agent."+token+".api.session.get")
			}
			w.asks(nc, "asp.operator.api.agent.add")
		})
	}
}

// Nobody else can log in to the broker's account.
func TestDevBrokerKeyIsProved(t *testing.T) {
	w := start(t, true)
	_, err := w.dial(nats.Nkey(natskit.Public(t, w.owner), natskit.NewKey(t).Sign))
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Fatalf("got %v, want %v", err, nats.ErrAuthorization)
	}
}

func TestDevReadsInboxes(t *testing.T) {
	w := start(t, true)
	w.streams(alice, bob)
	nc := w.connect()
	w.reads(nc, alice, jetstream.Msg.Ack)
	w.reads(nc, bob, func(m jetstream.Msg) error { return m.DoubleAck(w.ctx) })
}

func TestDevHearsEventsAndEscalations(t *testing.T) {
	w := start(t, true)
	nc := w.connect()
	events, escalations := subscribe(t, nc, "asp.event.>"), subscribe(t, nc, "asp.escalation.>")
	natskit.Must(t, w.broker.Publish("asp.event.s1.closed", []byte("closed")))
	natskit.Must(t, w.broker.Publish("asp.escalation.acme_com.high.e1", []byte("help")))
	if got := string(next(t, events).Data) + " " + string(next(t, escalations).Data); got != "closed help" {
		t.Fatalf("received %q", got)
	}
}

// In development the JetStream API is read-only, and answers once.
func TestDevJetStreamIsReadOnly(t *testing.T) {
	w := start(t, true)
	w.streams(alice)
	js, err := jetstream.New(w.connect())
	natskit.Must(t, err)
	_, err = js.AccountInfo(w.ctx)
	natskit.Must(t, err)
	inbox, err := js.Stream(w.ctx, "ASP_INBOX")
	natskit.Must(t, err)
	var names []string
	for name := range js.StreamNames(w.ctx).Name() {
		names = append(names, name)
	}
	for info := range js.ListStreams(w.ctx).Info() {
		names = append(names, info.Config.Name)
	}
	for name := range inbox.ConsumerNames(w.ctx).Name() {
		names = append(names, name)
	}
	for info := range inbox.ListConsumers(w.ctx).Info() {
		names = append(names, info.Name)
	}
	if len(names) != 6 {
		t.Fatalf("listed %q, want two streams and one consumer, each twice", names)
	}
	for _, subject := range []string{
		"$JS.API.STREAM.DELETE.ASP_SESSIONS", "$JS.API.STREAM.PURGE.ASP_SESSIONS", "$JS.API.STREAM.UPDATE.ASP_SESSIONS",
		"$JS.API.STREAM.CREATE.MINE", "$JS.API.STREAM.MSG.DELETE.ASP_SESSIONS", "$JS.API.STREAM.SNAPSHOT.ASP_SESSIONS",
		"$JS.API.CONSUMER.DELETE.ASP_INBOX." + alice, "$JS.API.CONSUMER.CREATE.ASP_INBOX",
		"$JS.API.CONSUMER.DURABLE.CREATE.ASP_INBOX.mine", "$JS.API.CONSUMER.PAUSE.ASP_INBOX." + alice,
		"$JS.API.CONSUMER.MSG.NEXT.ASP_SESSIONS.mine", "$JS.ACK.ASP_SESSIONS.mine.1.1.1.1.0",
		"asp.session.s1", "asp.event.s1.closed", "asp.agent." + alice + ".inbox.s1", "asp.timer.x", "$SYS.REQ.SERVER.PING",
	} {
		if publishes(t, w.connect(), subject) {
			t.Errorf("may publish %s", subject)
		}
	}
}

// Permissions do not apply to reply subjects, and the reply subject of a pull is where the
// message goes. It must not leave the clients' account.
func TestDevInjectedReplyStaysInItsAccount(t *testing.T) {
	w := start(t, true)
	w.streams(alice)
	transcript, calls := subscribe(t, w.broker, "asp.session.>"), subscribe(t, w.broker, "asp.agent.*.api.>")
	nc := w.connect()
	pull := func(reply string) {
		natskit.Must(t, nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX."+alice, reply, []byte(`{"batch":1}`)))
		natskit.Must(t, nc.Flush())
	}
	if pull("$JS.API.STREAM.DELETE.ASP_SESSIONS"); !errors.Is(nc.LastError(), nats.ErrPermissionViolation) {
		t.Errorf("the server takes a request for a reply: %v", nc.LastError())
	}
	for _, reply := range []string{"asp.session.s1", "asp.agent." + bob + ".api.session.get", "asp.operator.api.agent.rm"} {
		w.deliver(alice)
		landed := subscribe(t, nc, reply)
		pull(reply)
		if got := next(t, landed).Data; string(got) != "for "+alice {
			t.Fatalf("%s: %q landed", reply, got)
		}
	}
	if _, err := w.js.Stream(w.ctx, "ASP_SESSIONS"); err != nil {
		t.Fatalf("the transcripts are gone: %v", err)
	}
	for _, sub := range []*nats.Subscription{transcript, calls} {
		natskit.Must(t, w.broker.Publish(map[*nats.Subscription]string{transcript: "asp.session.end", calls: "asp.agent.x.api.end"}[sub], nil))
		if msg := next(t, sub); len(msg.Data) > 0 {
			t.Errorf("%s reached the broker: %s", msg.Subject, msg.Data)
		}
	}
}

func TestDevListensOnLoopbackOnly(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:4222", "example.com:4222"} {
		_, err := embedded.Start(embedded.Options{
			StoreDir: t.TempDir(), Listen: listen, Dev: true, Broker: natskit.Public(t, natskit.NewKey(t)), Authority: logins(t),
		})
		if !errors.Is(err, embedded.ErrNotLoopback) {
			t.Errorf("%s: got %v, want %v", listen, err, embedded.ErrNotLoopback)
		}
	}
}
