package server_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// Two agents that are registered negotiate, and each reads its own inbox.
func TestRegisteredTakePart(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o server.Options) {
		w := start(t, o)
		join := func(a performatives.Agent) *client.Client {
			signer, err := performatives.NewSigner(w.registers(a))
			testkit.Must(t, err)
			c, err := client.Connect(w.Ctx, w.URL, a, testkit.Keys(t, signer)...)
			testkit.Must(t, err)
			t.Cleanup(func() { c.Close() })
			return c
		}
		a, b := join(alpha), join(beta)
		s, err := a.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "storage"})
		testkit.Must(t, err)
		js, err := jetstream.New(b.Conn())
		testkit.Must(t, err)
		inbox, err := js.Consumer(w.Ctx, api.InboxStream, beta.Token())
		testkit.Must(t, err)
		m, err := inbox.Next(jetstream.FetchMaxWait(testkit.Patience))
		testkit.Must(t, err)
		testkit.Must(t, m.DoubleAck(w.Ctx))
		if want := api.Inbox(beta, s.ID()); m.Subject() != want {
			t.Errorf("the inbox holds %s, want %s", m.Subject(), want)
		}
		_, err = b.Session(s.ID()).Accept(w.Ctx, "inv")
		testkit.Must(t, err)
		found := 0
		for _, err := range w.OperatorClient().Sessions(w.Ctx, api.ListSessions{}) {
			testkit.Must(t, err)
			found++
		}
		if found != 1 {
			t.Errorf("the operator sees %d sessions, want 1", found)
		}
	})
}

func TestOthersAreRefused(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o server.Options) {
		w := start(t, o)
		signs, unknown := w.registers(alpha), testkit.NewKey(t)
		registered := testkit.LoginOf(t, signs)
		owner, err := server.ReadSeed(o.Data + "/" + server.BrokerLogin)
		testkit.Must(t, err)
		for name, how := range map[string]nats.Option{
			"nothing":                       nats.Name("nobody"),
			"unregistered":                  testkit.Bare(t, unknown),
			"registered, another's sign":    nats.Nkey(testkit.Public(t, registered), unknown.Sign),
			"a key that signs":              testkit.Bare(t, signs),
			"registered, another nonce":     nats.Nkey(testkit.Public(t, registered), func([]byte) ([]byte, error) { return registered.Sign([]byte("old nonce")) }),
			"the broker's, another's sign":  nats.Nkey(testkit.Public(t, owner), unknown.Sign),
			"the broker's as a user":        nats.UserInfo(testkit.Public(t, owner), ""),
			"a registered name as a user":   nats.UserInfo(alpha.Token(), ""),
			"a registered key as a token":   nats.Token(testkit.Public(t, registered)),
			"the operator, another's sign":  nats.Nkey(testkit.Public(t, w.Operator()), unknown.Sign),
			"the development's user's name": nats.UserInfo("dev", ""),
		} {
			if _, err := w.dial(alpha, how); !errors.Is(err, nats.ErrAuthorization) {
				t.Errorf("%s: %v, want %v", name, err, nats.ErrAuthorization)
			}
		}
	})
}

// PROTOCOL.md §2: a principal uses its own subjects only, and a reply subject of
// its choice reaches no other account.
func TestOwnSubjectsOnly(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o server.Options) {
		w := start(t, o)
		key := w.registers(alpha)
		w.registers(beta)
		own, other := alpha.Token(), beta.Token()
		for subject, may := range map[string]bool{
			"asp.agent." + own + ".submit.s1": true, "asp.agent." + own + ".api.session.list": true,
			"$JS.API.CONSUMER.INFO.ASP_INBOX." + own: true, "$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX." + own: true,
			"$JS.ACK.ASP_INBOX." + own + ".1.1.1.1.0": true,

			"asp.agent." + other + ".submit.s1": false, "asp.agent." + other + ".api.session.list": false,
			"asp.operator.api.agent.rm": false, "asp.session.s1": false, "asp.agent." + own + ".inbox.s1": false,
			"$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX." + other: false, "$JS.ACK.ASP_INBOX." + other + ".1.1.1.1.0": false,
			"$JS.API.STREAM.DELETE.ASP_SESSIONS": false, "$JS.API.INFO": false, "$JS.API.CONSUMER.CREATE.ASP_INBOX": false,
			"$SYS.REQ.USER.AUTH": false, "$SYS.REQ.SERVER.PING.CONNZ": false, "_INBOX." + other + ".x": false, "$SRV.PING": false,
		} {
			l := w.logsIn(alpha, key)
			testkit.Must(t, l.Publish(subject, nil))
			if got := testkit.Allowed(t, l); got != may {
				t.Errorf("may publish %s: %t, want %t", subject, got, may)
			}
			l.Close()
		}
		for subject, may := range map[string]bool{
			"_INBOX." + own + ".x": true,
			"_INBOX.>":             false, "_INBOX." + other + ".x": false, "asp.session.>": false, "asp.event.>": false,
			"asp.agent." + own + ".inbox.*": false, ">": false, "$SYS.>": false,
		} {
			l := w.logsIn(alpha, key)
			_, err := l.SubscribeSync(subject)
			testkit.Must(t, err)
			if got := testkit.Allowed(t, l); got != may {
				t.Errorf("may subscribe to %s: %t, want %t", subject, got, may)
			}
			l.Close()
		}
		l := w.logsIn(alpha, key)
		for _, reply := range []string{"$JS.API.STREAM.DELETE.ASP_SESSIONS", "asp.session.s1", "asp.operator.api.agent.rm"} {
			testkit.Must(t, l.PublishRequest(api.Call(alpha, api.SessionList.Name), reply, nil))
		}
		w.asks(l, alpha) // calls are answered in order, so the earlier ones are done
		testkit.Must(t, w.Server.Broker.Command.Healthy(w.Ctx))
	})
}

// A NATS server configured for other keys refuses the broker, and Start says so.
func TestServerKnowsOtherKeys(t *testing.T) {
	t.Parallel()
	url := testkit.Configured(t).NATS
	if _, err := server.Start(t.Context(), server.Options{Data: t.TempDir(), NATS: url}); !errors.Is(err, server.ErrNotLetIn) {
		t.Errorf("got %v, want %v", err, server.ErrNotLetIn)
	}
}

// The configuration contains no secret, and generating it again changes nothing.
func TestConfigHoldsNoSecret(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first, err := server.Config(data, testkit.Shards)
	testkit.Must(t, err)
	again, err := server.Config(data, testkit.Shards)
	testkit.Must(t, err)
	if first != again {
		t.Error("the second configuration differs")
	}
	files, err := os.ReadDir(data)
	testkit.Must(t, err)
	for _, f := range files {
		key, err := server.ReadSeed(data + "/" + f.Name())
		testkit.Must(t, err)
		seed, err := key.Seed()
		testkit.Must(t, err)
		if strings.Contains(first, string(seed)) {
			t.Errorf("it contains the seed of %s", f.Name())
		}
	}
}
