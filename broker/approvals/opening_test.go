package approvals_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/approvals"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/testkit"
)

func openStore(t *testing.T) (*store.Store, *nats.Conn) {
	t.Helper()
	nc := testkit.StartServer(t).Connect()
	s, err := store.Open(t.Context(), store.Options{Conn: nc})
	testkit.Must(t, err)
	t.Cleanup(s.Close)
	return s, nc
}

func noSchema(string) (api.Schema, bool) { return api.Schema{}, false }

// optionsOf are those of an inbox whose registry has two humans who may decide, and whose sessions
// have one message each and nobody who takes part.
func optionsOf(t *testing.T, s *store.Store) approvals.Options {
	t.Helper()
	people, err := registry.Open(t.Context(), registry.Options{
		Store: s, Broker: newKey(t), Now: time.Now, Log: zap.NewNop(), Timely: func(time.Time) error { return nil },
	})
	testkit.Must(t, err)
	for _, human := range []performatives.Agent{alice, bob} {
		_, err := people.Add(t.Context(), api.Card{Agent: human, Key: newKey(t), Registry: api.Registry{MayDecide: true}})
		testkit.Must(t, err)
	}
	people.Close() // it knows them, and follows nothing any more
	return approvals.Options{
		Store: s, Registry: people, Schema: noSchema,
		MayRead: func(context.Context, api.Caller, performatives.SessionID) bool { return false },
		Messages: func(context.Context, api.Caller, api.ListMessages) (api.Messages, error) {
			return api.Messages{Messages: []jsontext.Value{jsontext.Value(`{}`)}}, nil
		},
		Terms:     func(context.Context, performatives.SessionID, string) (jsontext.Value, error) { return nil, nil },
		Lapses:    func(context.Context, performatives.SessionID, escalation.ID) (bool, error) { return false, nil },
		Reconcile: func(context.Context, performatives.SessionID) error { return nil },
	}
}

func newKey(t *testing.T) performatives.Key {
	t.Helper()
	return performatives.Key(testkit.Public(t, testkit.NewKey(t)))
}

// stored is an approval as the stream has it.
func stored(status string, deadline time.Time) api.EscalationItem {
	return api.EscalationItem{
		EscalationView: api.EscalationView{
			ID: escalation.ID(testkit.NewID()), By: alpha, OnBehalfOf: alpha, Organisation: "acme.com", Reason: "authority-limit",
			Urgency: "high", Context: jsontext.Value(`"?"`), Deadline: api.Timestamp(deadline), Status: status,
		},
		Session: testkit.NewSession(), Head: &session.ChainHead{}, Route: &api.Route{Levels: []api.Level{{Quorum: 1}}},
	}
}

// Memory has the approvals that ended last. Their humans find the others by their ids, as they were,
// and others find none.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	a, err := approvals.Open(t.Context(), optionsOf(t, s))
	testkit.Must(t, err)
	defer a.Close()
	a.KeepClosed(1)

	human, ctx := api.Caller{Agent: alice}, t.Context()
	var ids []escalation.ID
	for n, status := range []string{performatives.Denied, performatives.Denied, "open"} {
		ended := time.Date(2026, 7, 1, 12, n, 0, 0, time.UTC)
		item := stored(status, ended.Add(time.Hour))
		if status != "open" {
			item.DecidedBy, item.DecidedAt = alice, api.Timestamp(ended)
		}
		testkit.Must(t, a.Notified(ctx, &item, "by mail"))
		now, err := a.Watch(ctx, human, api.WatchEscalations{})
		testkit.Must(t, err)
		data, err := json.Marshal(item)
		testkit.Must(t, err)
		_, err = s.Put(ctx, store.Message{Subject: api.Escalation("acme.com", "high", string(item.ID)), Data: data})
		testkit.Must(t, err)
		_, err = a.Watch(ctx, human, api.WatchEscalations{Since: now.Cursor, Wait: 25_000})
		testkit.Must(t, err)
		ids = append(ids, item.ID)
	}
	if approvals, cases := a.InMemory(); approvals != 2 || cases != 2 {
		t.Errorf("memory has %d approvals and %d cases, want the open one and the one that ended last", approvals, cases)
	}
	list, err := a.List(ctx, human, api.ListEscalations{Status: "all"})
	if err != nil || len(list.Escalations) != 2 || list.Escalations[0].ID != ids[2] || list.Escalations[1].ID != ids[1] {
		t.Errorf("the list is %+v %v", list, err)
	}
	first := string(ids[0])
	for _, c := range []api.Caller{human, {Operator: true}} {
		item, err := a.Get(ctx, c, api.GetEscalation{Escalation: first})
		if err != nil || item.Status != performatives.Denied || item.DecidedBy != alice || len(item.Transcript) != 1 {
			t.Errorf("%+v reads %+v %v", c, item, err)
		}
		history, err := a.History(ctx, c, api.ReadCaseLog{Escalation: first})
		if err != nil || len(history.Actions) != 1 || history.Actions[0].Kind != escalation.Notified {
			t.Errorf("%+v reads the history %+v %v", c, history, err)
		}
	}
	_, unknown := a.Get(ctx, human, api.GetEscalation{Escalation: string(testkit.NewID())})
	for _, c := range []struct {
		caller api.Caller
		id     string
	}{{human, "x"}, {human, "*"}, {human, ">"}, {human, ""}, {api.Caller{Agent: bob}, string(ids[0])}, {api.Caller{Agent: alpha}, string(ids[2])}} {
		_, err := a.Get(ctx, c.caller, api.GetEscalation{Escalation: c.id})
		if testkit.CodeOf(err) != session.UnknownSession || err.Error() != unknown.Error() {
			t.Errorf("%s asks for %q: %v", c.caller.Agent, c.id, err)
		}
	}
}

// A case log follows the answer to a decision. A history that is asked for then waits for it.
func TestHistoryHasTheDecision(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	var a *approvals.Approvals
	item := stored(performatives.Approved, time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	item.DecidedBy, item.DecidedAt = alice, item.Deadline
	o := optionsOf(t, s)
	o.Reconcile = func(ctx context.Context, id performatives.SessionID) error { // the decision is not in the case log yet
		if id != item.Session {
			return session.NoSuchSession()
		}
		return a.Notified(ctx, &item, "decided")
	}
	data, err := json.Marshal(item)
	testkit.Must(t, err)
	_, err = s.Put(t.Context(), store.Message{Subject: api.Escalation("acme.com", "high", string(item.ID)), Data: data})
	testkit.Must(t, err)
	a, err = approvals.Open(t.Context(), o)
	testkit.Must(t, err)
	defer a.Close()
	history, err := a.History(t.Context(), api.Caller{Agent: alice}, api.ReadCaseLog{Escalation: string(item.ID)})
	if err != nil || len(history.Actions) != 1 {
		t.Errorf("the history is %+v %v", history, err)
	}
}

// Whichever step of Open fails, and after Close, nothing is left that follows a stream. It is not
// parallel: it counts goroutines.
func TestOpenAndCloseLeaveNothing(t *testing.T) { //nolint:paralleltest // it counts goroutines
	s, nc := openStore(t)
	js, err := jetstream.New(nc)
	testkit.Must(t, err)
	streams := []string{api.CaseLogStream, api.EscalationsStream}
	leftovers := func() (found []string) {
		for _, name := range streams {
			stream, err := js.Stream(t.Context(), name)
			if err != nil {
				continue // it is the one that is missing
			}
			names := stream.ConsumerNames(t.Context())
			for consumer := range names.Name() {
				if !api.IsGroupConsumer(consumer) {
					found = append(found, name+" has the consumer "+consumer)
				}
			}
		}
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if n := strings.Count(string(stacks), "store.(*feed).wait"); n > 0 {
			found = append(found, string(stacks))
		}
		return found
	}
	group := func(name string) *escalation.Rules {
		return &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{
			"acme.com": {Groups: map[string][]performatives.Agent{name: {alice}}},
		}}
	}
	o := optionsOf(t, s)
	o.Rules = group("buyers")
	a, err := approvals.Open(t.Context(), o)
	testkit.Must(t, err)
	if len(leftovers()) == 0 {
		t.Error("an open inbox follows no stream: this test does not see it")
	}
	a.Close()
	a.Close()
	if found := leftovers(); len(found) > 0 {
		t.Errorf("after Close: %s", found)
	}

	o.Rules = group("not a name.")
	fails := func(step string) {
		t.Helper()
		if _, err := approvals.Open(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), step+": ") {
			t.Errorf("Open: %v, want a failure of %s", err, step)
		}
		if found := leftovers(); len(found) > 0 {
			t.Errorf("after a failure of %s: %s", step, found)
		}
	}
	fails("groups of approvers")
	testkit.Must(t, js.DeleteStream(t.Context(), api.EscalationsStream))
	fails("escalation items")
	testkit.Must(t, js.DeleteStream(t.Context(), api.CaseLogStream))
	fails("case logs")
}
