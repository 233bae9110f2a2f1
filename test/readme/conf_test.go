package readme

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// TestServerConfiguration runs a server from examples/nats-server.conf,
// a broker on it, and a negotiation over that: what needs each import.
func TestServerConfiguration(t *testing.T) {
	text := document(t, "examples/nats-server.conf")
	keys := map[string]nkeys.KeyPair{}
	for _, who := range []string{"BROKER", "ALPHA", "BETA", "OPERATOR"} {
		keys[who] = testkit.NewKey(t)
		text = strings.Replace(text, "nkey: "+who, "nkey: "+testkit.Public(t, keys[who]), 1)
	}
	text = strings.Replace(text, "listen: 127.0.0.1:4222\n", "", 1) // the test has its own
	text = strings.Replace(text, "/var/lib/nats", t.TempDir(), 1)
	url := testkit.StartServerProcess(t, text).URL()

	ctx, cancel := context.WithTimeout(context.Background(), 2*testkit.Patience)
	defer cancel()
	n, err := server.Start(ctx, server.Options{Data: t.TempDir(), NATS: url, NATSOptions: []nats.Option{testkit.Bare(t, keys["BROKER"])}})
	testkit.Must(t, err)
	t.Cleanup(func() { n.Close(context.Background()) })

	operator, err := client.ConnectOperator(ctx, url, client.Login(testkit.Signer(t, keys["OPERATOR"])))
	testkit.Must(t, err)
	defer operator.Close()
	events, err := operator.Conn().SubscribeSync(api.AllEvents)
	testkit.Must(t, err)
	if _, err := operator.Conn().Request("$SRV.INFO.asp", nil, testkit.Patience); err != nil {
		t.Errorf("the operator finds no service: %v", err)
	}
	join := func(uri performatives.Agent, who string) *client.Client {
		signer := testkit.Signer(t, testkit.NewKey(t))
		if _, err := operator.AddAgent(ctx, api.Card{Agent: uri, Key: signer.Key()}); err != nil {
			t.Fatal(err)
		}
		c, err := client.Connect(ctx, url, uri, client.Key(signer), client.Login(testkit.Signer(t, keys[who])))
		testkit.Must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	alpha, beta := join("agent://acme.com/procurement/alpha", "ALPHA"), join("agent://widgets.co/sales/beta", "BETA")
	s, err := alpha.Invite(ctx, client.Invitation{With: []performatives.Agent{beta.Agent()}, Purpose: "a test"})
	testkit.Must(t, err)
	invitation, err := beta.Await(ctx, performatives.Propose)
	testkit.Must(t, err)
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
		t.Errorf("the operator receives no events: %v", err)
	}

	// What the permissions are for.
	denied := make(chan error, 1)
	outsider, err := nats.Connect(url, testkit.Bare(t, keys["ALPHA"]), nats.CustomInboxPrefix("_INBOX."+alpha.Agent().Token()),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	testkit.Must(t, err)
	t.Cleanup(outsider.Close)
	for _, subject := range []string{
		api.Call(beta.Agent(), api.SessionList.Name), api.Submit(beta.Agent(), s.ID()), api.Session(s.ID()),
		"$JS.API.STREAM.INFO." + api.SessionsStream, "$JS.API.INFO", api.OperatorCall(api.SessionList.Name),
	} {
		testkit.Must(t, outsider.Publish(subject, []byte("{}")))
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
