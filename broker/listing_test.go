package broker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

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
