package broker_test

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// A site is one server on which any number of brokers share the work.
type site struct {
	*testing.T
	*testkit.Server
}

func newSite(t *testing.T) site {
	t.Helper()
	return site{t, testkit.StartServer(t)}
}

// meet lets brokers know each other.
func (s site) meet(brokers ...*server.Broker) {
	s.Helper()
	for range 2 { // what one subscribes to has reached the server when it answers again
		for _, b := range brokers {
			testkit.Must(s, b.Command.Beat(s.Context()))
		}
	}
}

func (s site) close(b *server.Broker) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		s.Error(err)
	}
}

// TestTwoBrokers: acts of the same sessions go through two brokers as they
// come; none is refused for what a broker does not know of yet.
func TestTwoBrokers(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	core, logs := observer.New(zap.DebugLevel)
	logged := func(o *server.BrokerOptions) { o.Log = zap.New(core) }
	one, nc := at.OpenBroker(logged)
	two, _ := at.OpenBroker(logged)
	at.meet(one, two)
	w := fault.NewWitness(t, at.URL)
	var talking sync.WaitGroup
	talks := make([]*fault.Session, 3)
	for i := range talks {
		talks[i] = w.Open(alpha, beta, gamma)
		for _, who := range []performatives.Agent{alpha, beta, gamma} {
			talking.Go(func() {
				for range 30 {
					talks[i].Say(who, "INFORM", `{"type":"fact","data":1}`)
				}
			})
		}
	}
	talking.Wait()
	if forwarded(one)+forwarded(two) == 0 {
		t.Error("no act was forwarded")
	}
	for waiting(one)+waiting(two) > 0 {
		testkit.Must(t, nc.Flush())
	}
	if silent := logs.FilterMessage("the owner does not answer").Len(); uint64(silent) == forwarded(one)+forwarded(two) { //nolint:gosec // a count
		t.Errorf("%d acts were answered here, and nobody was told", silent)
	}
	for _, s := range talks {
		s.Say(alpha, "CLOSE", "{}")
		s.Again()
	}
	at.close(two)
	at.close(one)
	three, _ := at.OpenBroker()
	for _, s := range talks {
		s.Again()
		s.Check(alpha, beta, gamma)
	}
	at.close(three)
}

// TestOneOfTwoIsGone: what a broker that is gone left undone, the other one
// does, without a restart.
func TestOneOfTwoIsGone(t *testing.T) {
	t.Parallel()
	const most = 64 // sessions, and acts
	for _, point := range []string{"after the append", "after the answer", "after one of the inbox copies", "after the inbox copies"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			at := newSite(t)
			doomed, connection := at.OpenBroker()
			defer func() {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				doomed.Close(ctx)
			}()
			other, _ := at.OpenBroker()
			at.meet(doomed, other)
			w := fault.NewWitness(t, at.URL)
			s := w.Open(alpha, beta, gamma)
			for n := 0; n < most && isOwnedBy(other, s.ID); n++ { // nobody says anything in the others
				s = w.Open(alpha, beta, gamma)
			}
			s.Say(beta, "INFORM", `{"type":"fact","data":1}`)
			ctx, cancel := context.WithCancel(t.Context())
			stopped := doomed.Command.StopAt(point)
			go func() { <-stopped; cancel() }()
			for n := 0; n < most && ctx.Err() == nil; n++ { // one may be judged where it is received, if its owner is slow
				s.SayOnce(ctx, alpha, "OBSERVE", `{"subject":"x"}`)
			}
			if ctx.Err() == nil {
				t.Fatalf("of %d acts of its session, the broker that is to stop got none", most)
			}
			<-stopped
			connection.Close()
			s.Delivered(beta, gamma) // nobody says anything more: the other broker notices
			s.Again()
			s.Say(gamma, "OBSERVE", `{"subject":"on we go"}`)
			s.Check(alpha, beta, gamma)
			var found api.Sessions
			w.Call(api.SessionList.Name, `{"state":"CONVERSING"}`, &found)
			if len(found.Sessions) != 1 {
				t.Errorf("the list of sessions has %+v", found)
			}
			at.close(other)
		})
	}
}

func isOwnedBy(b *server.Broker, id performatives.SessionID) bool {
	_, elsewhere := b.Parts.Members.Owner(id)
	return !elsewhere
}

// forwarded is how many acts a broker has forwarded.
func forwarded(b *server.Broker) uint64 {
	total, _ := b.Gateway.Forwarded()
	return total
}

// waiting is how many of them are not answered yet.
func waiting(b *server.Broker) int {
	_, waiting := b.Gateway.Forwarded()
	return waiting
}
