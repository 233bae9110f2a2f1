package broker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// newMapped is a site whose server routes acts to their owner.
func newMapped(t *testing.T) (site, *natsserver.Server) {
	t.Helper()
	var options natsserver.Options
	if err := options.ProcessConfigString(fmt.Sprintf(`
		listen: "127.0.0.1:-1"
		jetstream { store_dir: %q, limits { batch { max_inflight_per_stream: 1000, max_inflight_total: 1000 } } }
		mappings: { %q: %q }`, t.TempDir(), api.AllSubmits, api.RouteMapping)); err != nil {
		t.Fatal(err)
	}
	options.NoSigs, options.NoLog = true, true
	ns, err := natsserver.NewServer(&options)
	testkit.Must(t, err)
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(testkit.Patience) {
		t.Fatal("the server is not ready")
	}
	return site{t, testkit.ServerAt(t, ns.ClientURL())}, ns
}

// unlimited lets one principal ask as fast as it can.
func unlimited(o *server.BrokerOptions) { o.Limits = limits.Limits{Rate: 1e9, Burst: -1} }

// ask submits an act that is no act in a session of its own.
func ask(nc *nats.Conn) (code string, err error) {
	id := performatives.SessionID(uuid.Must(uuid.NewV7()).String())
	m, err := testkit.Request(nc, api.Submit(alpha, id), []byte("{}"))
	if err != nil {
		return "", err
	}
	return m.Header.Get(api.ErrorCodeHeader), nil
}

// TestRouted: where the server routes acts to their owner, few are left to forward. Of a
// broker that is gone all are answered by the other one, which still takes it to be
// there.
func TestRouted(t *testing.T) {
	t.Parallel()
	at, ns := newMapped(t)
	one, gone := at.OpenBroker(unlimited)
	defer func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := one.Close(ctx); !errors.Is(err, nats.ErrConnectionClosed) {
			t.Errorf("leaving without a connection: %v", err)
		}
	}()
	clock := testkit.StoppedClock(time.Now())
	two, nc := at.OpenBroker(unlimited, func(o *server.BrokerOptions) { o.Now = clock.Now }) // by which nobody is silent for long
	at.meet(one, two)
	const acts = 300
	all := func() {
		t.Helper()
		for range acts {
			if code, err := ask(nc); err != nil || code != "400" {
				t.Fatalf("answered %q, %v", code, err)
			}
		}
	}
	all()
	if handed := forwarded(one) + forwarded(two); handed > acts/5 { // it is 1 in 14 acts; without the server it would be every other one
		t.Errorf("%d of %d acts were forwarded", handed, acts)
	}
	w := fault.NewWitness(t, at.URL)
	s := w.Open(alpha, beta)
	for range 20 {
		s.Say(beta, "INFORM", `{"type":"fact","data":1}`)
	}
	s.Check(alpha, beta)
	before, connected := forwarded(two), ns.NumClients()
	gone.Close()
	// What is sent to it before the server knows is lost with it.
	testkit.Eventually(t, "the server knows that the broker is gone", func() bool { return ns.NumClients() < connected })
	all()
	if forwarded(two) == before {
		t.Error("the broker that is gone was not taken to be there")
	}
	at.close(two)
}

// TestOwnersMove has brokers come and go while acts are on their way: each is
// answered by somebody.
func TestOwnersMove(t *testing.T) {
	t.Parallel()
	at, _ := newMapped(t)
	stays, nc := at.OpenBroker(unlimited)
	var asking sync.WaitGroup
	var enough atomic.Bool
	for range 4 {
		asking.Go(func() {
			for !enough.Load() {
				code, err := ask(nc)
				if err != nil || code != "400" {
					t.Errorf("answered %q, %v", code, err)
					return
				}
			}
		})
	}
	for range 5 {
		one, _ := at.OpenBroker(unlimited)
		at.meet(stays, one)
		two, _ := at.OpenBroker(unlimited)
		at.meet(stays, one, two)
		at.close(one)
		at.meet(stays, two)
		at.close(two)
		at.meet(stays)
	}
	enough.Store(true)
	asking.Wait()
	if forwarded(stays) == 0 {
		t.Error("no act was forwarded")
	}
	at.close(stays)
	if _, err := ask(nc); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("nobody is there, and the answer is %v", err)
	}
}
