package broker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

const shards = 4

// Sessions whose transcripts, inboxes and rows are in several streams survive a crash of server and broker, and a
// restart of both.
func TestShardsAfterACrash(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Shards: shards})
	w := fault.NewWitness(t, b.URL)
	var all []*fault.Session
	for n := range 3 * shards {
		s := w.Open(alpha, beta, gamma)
		s.Say(beta, "INFORM", `{"type":"fact","data":1}`)
		if n%2 == 0 {
			s.Say(alpha, "CLOSE", "{}")
		}
		all = append(all, s)
	}
	check := func(again func()) {
		t.Helper()
		again()
		b.Up()
		for _, s := range all {
			s.Again()
			s.Check(alpha, beta, gamma)
		}
		for state, want := range map[string]int{"CLOSED": len(all) / 2, "CONVERSING": len(all) / 2} {
			var found api.Sessions
			if w.Call(api.SessionList.Name, fmt.Sprintf(`{"state":%q}`, state), &found); len(found.Sessions) != want {
				t.Errorf("%d sessions are listed as %s, want %d", len(found.Sessions), state, want)
			}
		}
		var audited api.AuditedSessions
		if w.Call(api.AuditSessions.Name, `{}`, &audited); len(audited.Sessions) != len(all) {
			t.Errorf("%d sessions are in the transcripts, want %d", len(audited.Sessions), len(all))
		}
	}
	check(b.Crash)
	check(b.Down)
}

// Two brokers share sessions of several shards; what one that is gone left undone, the other does.
func TestShardsOfTwoBrokers(t *testing.T) {
	t.Parallel()
	at := site{t, testkit.StartSharded(t, shards)}
	sharded := func(o *server.BrokerOptions) { o.Shards = shards }
	one, gone := at.OpenBroker(sharded)
	defer func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		one.Close(ctx)
	}()
	two, _ := at.OpenBroker(sharded)
	at.meet(one, two)
	w := fault.NewWitness(t, at.URL)
	var talking sync.WaitGroup
	all := make([]*fault.Session, 2*shards)
	for n := range all {
		all[n] = w.Open(alpha, beta, gamma)
		for _, who := range []performatives.Agent{alpha, beta} {
			talking.Go(func() {
				for range 5 {
					all[n].Say(who, "INFORM", `{"type":"fact","data":1}`)
				}
			})
		}
	}
	talking.Wait()
	gone.Close()
	for _, s := range all {
		s.Say(gamma, "INFORM", `{"type":"fact","data":2}`)
		s.Again()
		s.Check(alpha, beta, gamma)
	}
	at.close(two)
}
