package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")

	// patience is how long anything may take that has to happen.
	patience = 10 * time.Minute

	mostRounds = 1000 // more than a test waits for

	// ackWait is after how long a message comes again that a dead or paused server was delivering. A
	// session may meet that several times, and would wait for the 30 s of PROTOCOL.md §2 each time.
	ackWait = time.Second
)

// A world is three servers, the brokers on them and their operator.
type world struct {
	*testing.T
	*testkit.Cluster
	data     string
	ctx      context.Context //nolint:containedctx // the test's own
	operator *client.Operator
	js       jetstream.JetStream // as the broker, in its account
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, data: t.TempDir()}
	config, err := server.Config(w.data, testkit.Shards)
	testkit.Must(w, err)
	w.Cluster = testkit.StartCluster(t, config, 3)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w.ctx = ctx
	return w
}

// connects logs the operator in, and looks over the brokers' shoulders.
func (w *world) connects() {
	w.Helper()
	var err error
	w.operator, err = client.ConnectOperator(w.ctx, w.URL(), client.LoginFile(w.data+"/"+server.OperatorSeed))
	testkit.Must(w, err)
	w.Cleanup(func() { w.operator.Close() })
	login, err := nats.NkeyOptionFromSeed(w.data + "/" + server.BrokerLogin)
	testkit.Must(w, err)
	nc, err := nats.Connect(w.URL(), login, nats.MaxReconnects(-1))
	testkit.Must(w, err)
	w.Cleanup(nc.Close)
	w.js, err = jetstream.New(nc)
	testkit.Must(w, err)
}

func (w *world) broker() *testkit.BrokerProcess {
	w.Helper()
	return w.brokerAt(w.URL())
}

// brokerAt starts a broker in a process of its own.
func (w *world) brokerAt(url string) *testkit.BrokerProcess {
	w.Helper()
	return testkit.StartBrokerProcess(w, testkit.ProcessOptions{Data: w.data, NATS: url, Replicas: 3, Archive: archive.Policy{After: 100 * time.Millisecond, Retry: 100 * time.Millisecond, Takeover: time.Second}})
}

// joins registers a principal and connects it.
func (w *world) joins(a performatives.Agent) *client.Client {
	w.Helper()
	signer := testkit.Signer(w, testkit.NewKey(w))
	_, err := w.operator.AddAgent(w.ctx, api.Card{Agent: a, Key: signer.Key(), LoginKeys: testkit.LoginKeys(w, signer)})
	testkit.Must(w, err)
	c, err := client.Connect(w.ctx, w.URL(), a, client.Key(signer), client.Login(testkit.Signer(w, testkit.LoginOf(w, signer))), client.Timeout(3*time.Second),
		client.NATS(nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2))) // or a paused server keeps it for a minute
	testkit.Must(w, err)
	w.Cleanup(func() { c.Close() })
	return c
}

// A market is sessions that go on while something happens.
type market struct {
	*world
	beta     *client.Client
	sessions []*client.Session // alpha's side
	acts     atomic.Int64      // accepted and received by the other side
	moved    chan struct{}     // there is news of acts
	rounds   chan struct{}     // that may still be said
	closing  chan struct{}
	met      sync.WaitGroup // until all sessions have both parties
	talking  sync.WaitGroup
}

// opens lets alpha and beta negotiate in n sessions, each act answered before the next. All are
// introduced when it returns.
func (w *world) opens(n int) *market {
	w.Helper()
	m := &market{world: w, beta: w.joins(beta), moved: make(chan struct{}, 1), rounds: make(chan struct{}, mostRounds), closing: make(chan struct{})}
	buyer := w.joins(alpha)
	for range n {
		s, err := buyer.Invite(w.ctx, client.Invitation{With: []performatives.Agent{beta}, Purpose: "a cluster"})
		testkit.Must(w, err)
		m.sessions = append(m.sessions, s)
		m.met.Add(1)
		m.talking.Go(func() {
			if err := m.talk(s, m.beta.Session(s.ID())); err != nil {
				w.Errorf("session %s: %v", s.ID(), err)
			}
		})
	}
	m.met.Wait()
	w.redeliversSoon()
	return m
}

// redeliversSoon gives the consumers of inboxes that are there now a shorter ackWait.
func (w *world) redeliversSoon() {
	w.Helper()
	inboxes, err := w.js.Stream(w.ctx, api.InboxStream)
	testkit.Must(w, err)
	consumers := inboxes.ListConsumers(w.ctx)
	for c := range consumers.Info() {
		c.Config.AckWait = ackWait
		_, err := inboxes.UpdateConsumer(w.ctx, c.Config)
		testkit.Must(w, err)
	}
	testkit.Must(w, consumers.Err())
}

func (m *market) talk(buys, sells *client.Session) error {
	met := sync.OnceFunc(m.met.Done)
	defer met()
	read := func(s *client.Session, act performatives.Performative) (*client.Message, error) {
		got, err := s.Await(m.ctx, act)
		if err != nil {
			return nil, fmt.Errorf("waiting for %s: %w", act, err)
		}
		m.acts.Add(1)
		select {
		case m.moved <- struct{}{}:
		default:
		}
		return got, got.Ack()
	}
	invited, err := read(sells, performatives.Propose)
	if err != nil {
		return err
	}
	if _, err := sells.Accept(m.ctx, invited.Ref()); err != nil {
		return err
	}
	if _, err := read(buys, performatives.Accept); err != nil {
		return err
	}
	met()
	for round := 0; ; round++ {
		select {
		case <-m.closing:
			_, err := buys.Close(m.ctx, client.Closing{Outcome: performatives.Completed})
			return err
		case <-m.rounds:
		}
		if _, err := buys.Propose(m.ctx, client.Proposal{Type: "x", Subject: "x", Terms: map[string]any{"price": round}}); err != nil {
			return err
		}
		offer, err := read(sells, performatives.Propose)
		if err != nil {
			return err
		}
		if _, err := sells.Counter(m.ctx, offer.Ref(), client.Proposal{Terms: map[string]any{"price": round + 1}}); err != nil {
			return err
		}
		counter, err := read(buys, performatives.Counter)
		if err != nil {
			return err
		}
		if _, err := buys.Reject(m.ctx, counter.Ref(), client.Rejection{Reason: "on to the next", Retryable: true}); err != nil {
			return err
		}
		if _, err := read(sells, performatives.Reject); err != nil {
			return err
		}
	}
}

// goesOn waits until every session has, on average, seen some acts more. It allows them three times as many: so they
// still talk when the next fault comes, and stop soon after.
func (m *market) goesOn(acts int) {
	m.Helper()
	for range acts * len(m.sessions) {
		select {
		case m.rounds <- struct{}{}:
		default:
		}
	}
	for from := m.acts.Load(); m.acts.Load() < from+int64(acts*len(m.sessions)); {
		select {
		case <-m.moved:
		case <-m.ctx.Done():
			m.Fatalf("the sessions stand still after %d acts", m.acts.Load())
		}
	}
}
