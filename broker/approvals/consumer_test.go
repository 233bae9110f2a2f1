package approvals_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// A human pulls from the consumer of their own group with a plain NATS client, and
// from no other group's.
func TestGroupConsumer(t *testing.T) {
	t.Parallel()
	const (
		buyer  = performatives.Agent("human://acme.com/buyer")
		lawyer = performatives.Agent("human://acme.com/lawyer")
		clerk  = performatives.Agent("human://acme.com/clerk") // may not decide
	)
	rules := &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{"acme.com": {
		Groups: map[string][]performatives.Agent{"buyers": {buyer, clerk}, "lawyers": {lawyer}},
	}}}
	testkit.Must(t, rules.Check())
	w := testkit.NewWorld(t, testkit.Options{Rules: rules})
	js, err := jetstream.New(w.Server.Broker.Options.Conn)
	testkit.Must(t, err)
	_, err = js.Publish(t.Context(), api.Escalation("acme.com", "high", "e1"), []byte(`{"escalationId":"e1"}`))
	testkit.Must(t, err)
	_, err = js.Publish(t.Context(), api.Escalation("widgets.co", "high", "e2"), []byte(`{"escalationId":"e2"}`))
	testkit.Must(t, err)

	for a, may := range map[performatives.Agent]bool{buyer: true, lawyer: false, clerk: false} {
		l := w.Principal(a, func(c *api.Card) { c.Registry.MayDecide = a != clerk }).Conn()
		testkit.Must(t, l.Publish("$JS.API.CONSUMER.MSG.NEXT.ASP_ESCALATIONS.acme_com~buyers", []byte(`{"no_wait":true}`)))
		if got := testkit.Allowed(t, l); got != may {
			t.Errorf("%s may pull from the buyers': %t", a, got)
		}
		if !may {
			continue
		}
		js, err := jetstream.New(l)
		testkit.Must(t, err)
		c, err := js.Consumer(t.Context(), api.EscalationsStream, "acme_com~buyers")
		testkit.Must(t, err)
		m, err := c.Next()
		testkit.Must(t, err)
		if m.Subject() != "asp.escalation.acme_com.high.e1" {
			t.Errorf("the buyers read %s", m.Subject())
		}
		testkit.Must(t, m.DoubleAck(t.Context()))
		if info, err := c.Info(t.Context()); err != nil || info.NumPending != 0 {
			t.Errorf("%+v %v", info, err)
		}
	}
}

// A human who loses the right to decide is disconnected, and cannot pull after logging in again.
func TestRevokedDeciderCannotPull(t *testing.T) {
	t.Parallel()
	const buyer = performatives.Agent("human://acme.com/buyer")
	rules := &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{"acme.com": {
		Groups: map[string][]performatives.Agent{"buyers": {buyer}},
	}}}
	testkit.Must(t, rules.Check())
	w := testkit.NewWorld(t, testkit.Options{Rules: rules})
	key := testkit.NewKey(t)
	decider := &testkit.Principal{TB: t, Agent: buyer, URL: w.URL}
	decider.SetKey(key)
	for _, decides := range []bool{true, false} {
		card := api.Card{Agent: buyer, Key: performatives.Key(testkit.Public(t, key)), LoginKeys: testkit.LoginKeys(t, key), Registry: api.Registry{MayDecide: true}}
		_, err := w.OperatorClient().AddAgent(w.Ctx, card)
		testkit.Must(t, err)
		l := decider.Conn()
		testkit.Must(t, l.Publish("$JS.API.CONSUMER.MSG.NEXT.ASP_ESCALATIONS.acme_com~buyers", []byte(`{"no_wait":true}`)))
		if !testkit.Allowed(t, l) {
			t.Fatal("a human who may decide cannot pull")
		}
		card.Registry = api.Registry{MayDecide: decides, Auditor: !decides}
		_, err = w.OperatorClient().AddAgent(w.Ctx, card)
		testkit.Must(t, err)
		if decides {
			if code := testkit.Code(t, decider.Call(api.SessionList.Name, "")); code != "" || l.IsClosed() {
				t.Errorf("nothing was taken away, and a call is answered %q", code)
			}
			continue
		}
		testkit.Cut(t, l)
		again := decider.Conn()
		testkit.Must(t, again.Publish("$JS.API.CONSUMER.MSG.NEXT.ASP_ESCALATIONS.acme_com~buyers", []byte(`{"no_wait":true}`)))
		if testkit.Allowed(t, again) {
			t.Error("a human who may no longer decide can still pull")
		}
	}
}
