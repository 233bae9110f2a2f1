package broker_test

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/fault"
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
	for range 2 { // what one subscribes to has reached the server when it is heard again
		for _, b := range brokers {
			testkit.Must(s, b.Beat(s.Context()))
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
// come; none is refused for what a broker has not heard of yet.
func TestTwoBrokers(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	core, logs := observer.New(zap.DebugLevel)
	logged := func(o *broker.Options) { o.Log = zap.New(core) }
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
		t.Error("no act was handed on")
	}
	for waiting(one)+waiting(two) > 0 {
		testkit.Must(t, nc.Flush())
	}
	if silent := logs.FilterMessage("the owner does not answer").Len(); uint64(silent) == forwarded(one)+forwarded(two) { //nolint:gosec // a count
		t.Errorf("%d acts were answered at home, and nobody was told", silent)
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
			w := fault.NewWitness(t, at.URL)
			s := w.Open(alpha, beta, gamma)
			s.Say(beta, "INFORM", `{"type":"fact","data":1}`)
			ctx, cancel := context.WithCancel(t.Context())
			stopped := doomed.StopAt(point)
			go func() { <-stopped; cancel() }()
			other, _ := at.OpenBroker()
			for ctx.Err() == nil { // until the broker that is to stop has got one: a queue group picks whom it likes
				s.SayOnce(ctx, alpha, "OBSERVE", `{"subject":"x"}`)
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
