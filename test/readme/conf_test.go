package readme

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
)

// TestServerConfiguration runs a server from the fragment of docs/OPERATIONS.md,
// a broker on it, and a negotiation over that: what needs each import.
func TestServerConfiguration(t *testing.T) {
	text := named(t, document(t, "docs/OPERATIONS.md"), "conf")
	seeds := map[string]string{}
	for _, who := range []string{"BROKER", "ALPHA", "BETA", "OPERATOR"} {
		seed, public := newKey(t)
		seeds[who] = seed
		text = strings.Replace(text, "nkey: "+who, "nkey: "+public, 1)
	}
	text = strings.Replace(text, "127.0.0.1:4222", "127.0.0.1:-1", 1)
	text = strings.Replace(text, "/var/lib/nats", t.TempDir(), 1)
	url := serve(t, text)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	n, err := server.Start(ctx, server.Options{Data: t.TempDir(), NATS: url, NATSOptions: []nats.Option{login(t, seeds["BROKER"])}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close(context.Background()) })

	operator, err := client.ConnectOperator(ctx, url, client.Seed(seeds["OPERATOR"]))
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	events, err := operator.Conn().SubscribeSync(api.AllEvents)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Conn().Request("$SRV.INFO.asp", nil, time.Minute); err != nil {
		t.Errorf("the operator finds no service: %v", err)
	}
	join := func(uri performatives.Agent, who string) *client.Client {
		pair, err := nkeys.FromSeed([]byte(seeds[who]))
		if err != nil {
			t.Fatal(err)
		}
		public, err := pair.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := operator.AddAgent(ctx, api.Card{Agent: uri, Key: performatives.Key(public)}); err != nil {
			t.Fatal(err)
		}
		c, err := client.Connect(ctx, url, uri, client.Seed(seeds[who]))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	alpha, beta := join("agent://acme.com/procurement/alpha", "ALPHA"), join("agent://widgets.co/sales/beta", "BETA")
	s, err := alpha.Invite(ctx, client.Invitation{With: []performatives.Agent{beta.Agent()}, Purpose: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	invitation, err := beta.Await(ctx, performatives.Propose)
	if err != nil {
		t.Fatal(err)
	}
	if err := invitation.Ack(); err != nil {
		t.Error(err)
	}
	if _, err := invitation.Session().Accept(ctx, invitation.Ref()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Await(ctx, performatives.Accept); err != nil {
		t.Fatal(err)
	}
	if _, err := events.NextMsgWithContext(ctx); err != nil {
		t.Errorf("the operator hears no events: %v", err)
	}

	// What the permissions are for.
	denied := make(chan error, 1)
	stranger := connect(t, url, login(t, seeds["ALPHA"]), nats.CustomInboxPrefix("_INBOX."+alpha.Agent().Token()),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	for _, subject := range []string{
		api.Call(beta.Agent(), api.SessionList.Name), api.Submit(beta.Agent(), s.ID()), api.Session(s.ID()),
		"$JS.API.STREAM.INFO." + api.SessionsStream, "$JS.API.INFO", api.OperatorCall(api.SessionList.Name),
	} {
		if err := stranger.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-denied:
			if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), subject) {
				t.Errorf("alpha on %s: %v", subject, err)
			}
		case <-ctx.Done():
			t.Fatalf("alpha may publish on %s", subject)
		}
	}
}

func newKey(t *testing.T) (seed, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	text, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	return string(text), public
}

// serve runs a NATS server with this configuration.
func serve(t *testing.T, configuration string) (url string) {
	t.Helper()
	var options natsserver.Options
	if err := options.ProcessConfigString(configuration); err != nil {
		t.Fatal(err)
	}
	options.NoSigs = true
	s, err := natsserver.NewServer(&options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	return s.ClientURL()
}

func login(t *testing.T, seed string) nats.Option {
	t.Helper()
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return nats.Nkey(public, pair.Sign)
}

func connect(t *testing.T, url string, options ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// TestEscalationsFile compares the example in OPERATIONS.md with the file that the server tests read.
func TestEscalationsFile(t *testing.T) {
	tested, err := os.ReadFile(filepath.Join(root(t), "server", "testdata", "escalations.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if shown := named(t, document(t, "docs/OPERATIONS.md"), "yaml escalations"); shown != string(tested) {
		t.Errorf("docs/OPERATIONS.md shows another file than server/testdata/escalations.yaml:\n%s", shown)
	}
}
