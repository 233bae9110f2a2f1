package broker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// Sessions are listed by when they were opened, also one whose id has another time, as those that the SDKs make of a hash.
func TestListedByOpening(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Sync: time.Second})
	hashed := performatives.SessionID("f47ac10b-58cc-7372-8567-0e02b2c3d479")
	made := func(at time.Time) performatives.SessionID {
		return performatives.SessionID(fmt.Sprintf("%08x-%04x-7000-8000-000000000000", at.UnixMilli()>>16, at.UnixMilli()&0xffff))
	}
	older, newer := made(time.Now().Add(-time.Minute)), made(time.Now().Add(time.Minute))
	a, invites := w.Principal(alpha), testkit.Invitation(w.Principal(beta).Agent)
	for _, id := range []performatives.SessionID{older, hashed, newer} {
		a.Say(id, invites)
	}
	page := func(q api.ListSessions) (ids []performatives.SessionID, next string) {
		page, err := client.Do(w.Ctx, w.Client(alpha), api.SessionList, q)
		testkit.Must(t, err)
		for _, s := range page.Sessions {
			ids = append(ids, s.Session)
		}
		return ids, page.Next
	}
	for _, when := range []string{"at first", "after a restart"} {
		if when != "at first" {
			w.Down()
			w.Up()
		}
		for _, q := range []api.ListSessions{{}, {Limit: 1}} {
			ids, next := page(q)
			for q.Cursor = next; q.Cursor != ""; q.Cursor = next {
				var more []performatives.SessionID
				more, next = page(q)
				ids = append(ids, more...)
			}
			if want := []performatives.SessionID{newer, hashed, older}; !slices.Equal(ids, want) {
				t.Errorf("%s, %+v: %v, want %v", when, q, ids, want)
			}
		}
		for _, prefix := range []string{"f47ac", "f47ac10b", string(hashed)} { // as 'parley session show f47ac' finds it
			if ids, _ := page(api.ListSessions{Search: prefix}); !slices.Equal(ids, []performatives.SessionID{hashed}) {
				t.Errorf("%s, %s finds %v", when, prefix, ids)
			}
		}
		for _, cursor := range []string{"1", string(hashed) + "."} {
			if _, err := client.Do(w.Ctx, w.Client(alpha), api.SessionList, api.ListSessions{Cursor: cursor}); testkit.CodeOf(err) != session.MalformedEnvelope {
				t.Errorf("%s, the cursor %q is answered %v", when, cursor, err)
			}
		}
	}
}

// The list of sessions survives a restart, those that are over too, which come while the
// broker serves; what a session that is over leaves among the open ones goes by itself.
func TestListAfterRestart(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Second})
	w := fault.NewWitness(t, b.URL)
	var open, over []string
	for n := range 6 {
		s := w.Open("agent://acme.com/alpha", "agent://widgets.co/beta")
		if n%2 == 0 {
			s.Say("agent://acme.com/alpha", "CLOSE", "{}")
			over = append([]string{string(s.ID)}, over...)
		} else {
			open = append([]string{string(s.ID)}, open...)
		}
	}
	list := func(request string) (ids []string) {
		var page api.Sessions
		w.Call(api.SessionList.Name, request, &page)
		for _, s := range page.Sessions {
			ids = append(ids, string(s.Session))
		}
		return ids
	}
	for _, restart := range []func(){func() {}, func() { b.Down(); b.Up() }, func() { b.Crash(); b.Up() }} {
		restart()
		if got := list(`{"state":"CLOSED"}`); !slices.Equal(got, over) {
			t.Errorf("over: %v, want %v", got, over)
		}
		if got := list(`{"state":"INTRODUCED","limit":2}`); !slices.Equal(got, open[:2]) {
			t.Errorf("open, the newest two: %v, want %v", got, open[:2])
		}
		if got := list(`{}`); len(got) != 6 || got[0] != open[0] || got[1] != over[0] {
			t.Errorf("all: %v, want %v and %v", got, open, over)
		}
	}
	login, err := nats.NkeyOptionFromSeed(b.Data + "/" + server.BrokerLogin)
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(b.Plain(login))
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), api.IndexStream)
	testkit.Must(t, err)
	testkit.Eventually(t, "only open sessions are listed among the open", func() bool {
		left, err := s.Info(t.Context(), jetstream.WithSubjectFilter(api.AllIndex))
		testkit.Must(t, err)
		return len(left.State.Subjects) == len(open)
	})
}

// A delegate who has not joined sees who asks it, and nothing of the deal.
func TestListedBeforeJoining(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	a, b, checks := w.Principal(alpha), w.Principal(beta), w.Principal("agent://law.org/checks")
	id := testkit.NewSession()
	a.Say(id, testkit.Invitation(b.Agent))
	b.Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
	b.Say(id, testkit.Offer("p1", 95))
	asked := a.Say(id, &performatives.DelegateBody{TargetAgent: checks.Agent, Scope: "is it legal?", Authority: "advisory"})
	row := func() api.SessionSummary {
		t.Helper()
		page, err := client.Do(w.Ctx, w.Client(checks.Agent), api.SessionList, api.ListSessions{})
		testkit.Must(t, err)
		if len(page.Sessions) != 1 {
			t.Fatalf("it lists %+v", page.Sessions)
		}
		return page.Sessions[0]
	}
	if got := row(); got.Amount != nil || got.LastTurn > 0 || got.Waiting != nil || got.State != session.Conversing {
		t.Errorf("before it joins: %+v", got)
	}
	checks.Say(id, &performatives.AcceptBody{ReferenceID: string(asked.Message)})
	if got := row(); got.LastTurn == 0 {
		t.Errorf("after it has joined: %+v", got)
	}
}
