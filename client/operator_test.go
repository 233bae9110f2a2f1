package client_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// all collects what an iterator yields.
func all[V any](t *testing.T, items func(func(V, error) bool)) (list []V) {
	t.Helper()
	for v, err := range items {
		testkit.Must(t, err)
		list = append(list, v)
	}
	return list
}

// An operator keeps the registry and sees everything, and takes part in
// nothing.
func TestOperator(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	o := must(client.ConnectOperator(w.Ctx, w.URL, client.Login(testkit.Signer(t, w.Operator()))))(t)
	defer o.Close()

	pair := must(nkeys.CreateUser())(t)
	trust := 70.0
	card := must(o.AddAgent(w.Ctx, api.Card{
		Agent: gamma, Name: "Gamma", Key: performatives.Key(must(pair.PublicKey())(t)), LoginKeys: testkit.LoginKeys(t, pair), Capabilities: []string{"review"},
		Registry: api.Registry{TrustScore: &trust},
	}))(t)
	if card.Agent != gamma || *card.Registry.TrustScore != trust {
		t.Errorf("registered %+v", card)
	}
	g := must(client.Connect(w.Ctx, w.URL, gamma, testkit.Keys(t, testkit.Signer(t, pair))...))(t)
	defer g.Close()
	w.Register("human://acme.com/alice") // without a decider nobody can escalate
	ours, _ := w.introduced(w.Client(alpha), w.Client(beta))
	must(ours.Escalate(w.Ctx, client.Escalation{Reason: client.ConfidenceLow, Context: "?"}))(t)

	if v := must(o.View(w.Ctx, ours.ID()))(t); v.State != session.Escalated {
		t.Errorf("the session is %s", v.State)
	}
	if n := len(must(o.Transcript(w.Ctx, ours.ID()))(t)); n != 3 {
		t.Errorf("the transcript has %d entries, want 3", n)
	}
	if n := len(all(t, o.Sessions(w.Ctx, api.ListSessions{}))); n != 1 {
		t.Errorf("there are %d sessions, want 1", n)
	}
	items := all(t, o.Escalations(w.Ctx, api.ListEscalations{}))
	if len(items) != 1 || items[0].Session != ours.ID() || items[0].Urgency != client.Medium {
		t.Fatalf("the escalations are %+v", items)
	}
	if item := must(o.Escalation(w.Ctx, string(items[0].ID)))(t); len(item.Transcript) != 3 {
		t.Errorf("the item has %d entries, want 3", len(item.Transcript))
	}
	if n := len(all(t, o.Agents(w.Ctx, api.ListAgents{Organization: "acme.com", Limit: 1}))); n != 3 {
		t.Errorf("acme.com has %d agents and humans, want 3", n)
	}
	if key := must(o.BrokerKey(w.Ctx))(t); key != w.Server.Broker.Command.Key() {
		t.Errorf("the broker's key is %s", key)
	}
	if gone := must(o.RemoveAgent(w.Ctx, gamma))(t); gone.Agent != "" && gone.Name != "Gamma" { // empty: its answer came late
		t.Errorf("removed %+v", gone)
	}
	if _, err := o.Card(w.Ctx, gamma); !errors.Is(err, client.Refused(session.UnknownAgent)) {
		t.Errorf("after it was removed: %v", err)
	}
}

// What a principal may ask: its sessions, the cards, the schemas.
func TestWhatAPrincipalAsks(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	a, b := w.Client(alpha), w.Client(beta)
	var want []performatives.SessionID
	for i := range 3 {
		s := must(a.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{beta}, Purpose: fmt.Sprint(i)}))(t)
		want = append([]performatives.SessionID{s.ID()}, want...)
	}
	var got []performatives.SessionID
	for _, s := range all(t, b.Sessions(w.Ctx, api.ListSessions{Awaiting: "me", Limit: 1})) {
		got = append(got, s.Session)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the sessions are %v, want %v", got, want)
	}
	for s, err := range a.Sessions(w.Ctx, api.ListSessions{State: "NOWHERE"}) {
		if !errors.Is(err, client.Refused(session.MalformedEnvelope)) {
			t.Errorf("got %+v and the error %v", s, err)
		}
	}

	card := must(a.Register(w.Ctx, api.Card{Name: "Alpha", Capabilities: []string{"procurement"}}))(t)
	if card.Agent != alpha || card.Key != a.Key() || must(b.Card(w.Ctx, alpha))(t).Name != "Alpha" {
		t.Errorf("registered %+v", card)
	}

	schema := map[string]any{"type": "object", "required": []string{"price"}}
	must(a.PutSchema(w.Ctx, "service-agreement-v1", schema))(t)
	again := must(b.PutSchema(w.Ctx, "service-agreement-v1", schema))(t)
	if again.By != alpha || again.Version != 1 {
		t.Errorf("put again: %+v", again)
	}
	if _, err := a.PutSchema(w.Ctx, "service-agreement-v1", map[string]any{"type": "object"}); !errors.Is(err, client.Refused(session.Duplicate)) {
		t.Errorf("another schema of that name: %v", err)
	}
	if s := must(b.Schema(w.Ctx, "service-agreement-v1"))(t); len(s.Schema) == 0 {
		t.Errorf("the schema is %+v", s)
	}
	if n := len(must(b.Schemas(w.Ctx))(t)); n != len(schemas.Names())+len(schemas.Contracts())+1 {
		t.Errorf("there are %d schemas", n)
	}
}

// A transcript longer than a page is read to its end.
func TestALongTranscript(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{Sync: testkit.Patience})
	ours, theirs := w.introduced(w.Client(alpha), w.Client(beta))
	pad := make([]byte, 100<<10) // a page has at most 1 MiB
	for range 12 {
		must(ours.Observe(w.Ctx, "x", pad))(t)
	}
	entries := must(theirs.Transcript(w.Ctx))(t)
	for i, e := range entries {
		if e.Stamp.Sequence != uint64(i) {
			t.Fatalf("entry %d stands at %d", e.Stamp.Sequence, i)
		}
	}
	if len(entries) != 14 {
		t.Errorf("there are %d entries, want 14", len(entries))
	}
}
