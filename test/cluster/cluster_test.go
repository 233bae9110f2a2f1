package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// ends closes the sessions and holds every transcript against the rules.
func (m *market) ends() {
	m.Helper()
	close(m.closing)
	m.talking.Wait()
	info, err := m.operator.Broker(m.ctx)
	testkit.Must(m, err)
	for _, s := range m.sessions {
		entries, err := m.operator.Transcript(m.ctx, s.ID())
		testkit.Must(m, err)
		verifier := transcript.NewVerifier(info.Key, transcript.Expect{Session: s.ID()})
		state := session.New(s.ID(), modes.All())
		for i, e := range entries {
			for _, fault := range verifier.Add(e.Bytes) {
				m.Errorf("session %s: %v", s.ID(), fault)
			}
			if state, err = session.Replay(state, e.Message, e.Stamp); err != nil {
				m.Fatalf("session %s, entry %d: %v", s.ID(), i, err)
			}
		}
		if faults := verifier.End(); len(faults) > 0 || state.Phase != session.Closed {
			m.Errorf("session %s: %v, %s", s.ID(), faults, state.Phase)
		}
	}
	m.Logf("%d acts, accepted and received", m.acts.Load())
}

// PROTOCOL.md §9: what is retryable heals when it is asked again. Each server is restarted in
// turn, the leader of the transcripts is killed, then a broker; nobody sees more than a pause.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	brokers := []*testkit.BrokerProcess{w.broker(), w.broker(), w.broker()}
	w.connects()
	m := w.opens(6)
	m.goesOn(5)
	for _, s := range w.Servers {
		s.Stop()
		m.goesOn(5)
		s.Start()
		w.Healthy()
		m.goesOn(5)
	}
	leader := w.Named(w.leader(api.SessionsStream))
	leader.Kill()
	m.goesOn(5)
	leader.Start()
	w.Healthy()
	brokers[0].Kill()
	m.goesOn(10)
	w.broker()
	m.goesOn(5)
	m.ends()
}

// A server that receives nothing for a while holds nobody up for ever: acts are accepted by the
// others, and what it was about to deliver comes again.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.broker()
	w.connects()
	m := w.opens(3)
	m.goesOn(5)
	leader := w.leader(api.SessionsStream)
	paused := w.Servers[slices.IndexFunc(w.Servers, func(s *testkit.ServerProcess) bool { return s.Name != leader })]
	paused.Pause()
	m.goesOn(5)
	paused.Resume()
	m.goesOn(5)
	m.ends()
}

func (w *world) leader(stream string) string {
	w.Helper()
	var leads string
	testkit.Eventually(w, stream+" has a leader", func() bool {
		s, err := w.js.Stream(w.ctx, stream)
		if err == nil {
			leads = s.CachedInfo().Cluster.Leader
		}
		return leads != ""
	})
	return leads
}

// The streams get as many replicas as a broker was started with, those that are there too, and
// keep them under a broker that says nothing of it.
func TestReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, step := range []struct{ option, want int }{{0, 1}, {3, 3}, {0, 3}} {
		core, logged := observer.New(zap.WarnLevel)
		n, err := server.Start(w.ctx, server.Options{Data: w.data, NATS: w.URL(), Replicas: step.option, Log: zap.New(core)})
		testkit.Must(w, err)
		w.connects()
		changed := logged.FilterMessage("--replicas changes the number of replicas of the store").All()
		if step.option > 1 != (len(changed) == 1) {
			w.Errorf("started with %d, the log says %v", step.option, changed)
		}
		examined := server.Examine(w.ctx, server.Options{Data: w.data, NATS: w.URL()})
		if says := fmt.Sprintf("; replicas: %d, ", step.want); !slices.ContainsFunc(examined, func(f server.Finding) bool { return strings.Contains(f.What, says) }) {
			w.Errorf("started with %d, doctor says %v", step.option, examined)
		}
		names := w.js.ListStreams(w.ctx)
		found := 0
		for info := range names.Info() {
			found++
			if info.Config.Replicas != step.want {
				w.Errorf("started with %d: %s has %d replicas, want %d", step.option, info.Config.Name, info.Config.Replicas, step.want)
			}
		}
		testkit.Must(w, names.Err())
		if found < 8 {
			w.Errorf("there are %d streams", found)
		}
		testkit.Must(w, n.Close(w.ctx))
	}
}

func (w *world) node(replicas int) *server.Server {
	w.Helper()
	n, err := server.Start(w.ctx, server.Options{Data: w.data, NATS: w.URL(), Replicas: replicas, Log: zaptest.NewLogger(w.T)})
	testkit.Must(w, err)
	return n
}

// A broker that starts before JetStream can serve waits for it.
func TestWaitsForJetStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	testkit.Must(w, w.node(3).Close(w.ctx))
	for _, s := range w.Servers[1:] {
		s.Stop()
	}
	short, cancel := context.WithTimeout(w.ctx, 3*time.Second)
	defer cancel()
	_, err := server.Start(short, server.Options{Data: w.data, NATS: w.URL(), Replicas: 3})
	if !errors.Is(err, context.DeadlineExceeded) {
		w.Errorf("one server of three: %v, want to wait", err)
	}
	started := make(chan *server.Server, 1)
	go func() {
		n, err := server.Start(w.ctx, server.Options{Data: w.data, NATS: w.URL(), Replicas: 3})
		if err != nil {
			w.Error(err)
		}
		started <- n
	}()
	for _, s := range w.Servers[1:] {
		s.Start()
	}
	if n := <-started; n != nil {
		testkit.Must(w, n.Close(w.ctx))
	}
}

// What comes while an agent thinks is received at once, though another server than its own leads the consumer: the
// client leaves no pull behind that nobody listens to.
func TestThinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.broker()
	w.connects()
	buyer, seller := w.joins(alpha), w.joins(beta)
	s, err := buyer.Invite(w.ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "a cluster"})
	testkit.Must(w, err)
	var found api.Consumer
	reply, err := seller.Call(w.ctx, api.SessionConsumer.Name, fmt.Appendf(nil, `{"sessionId":%q,"ahead":256}`, s.ID())) // as the client does
	testkit.Must(w, err)
	testkit.Must(w, json.Unmarshal(reply, &found))
	info := func() (i jetstream.ConsumerInfo) {
		testkit.Eventually(w, "the consumer is known", func() bool {
			one, cancel := context.WithTimeout(w.ctx, time.Second) // what is asked in an election may be lost
			defer cancel()
			c, err := w.js.Consumer(one, api.InboxStream, found.Name)
			if err == nil {
				i = *c.CachedInfo()
			}
			return err == nil && i.Cluster != nil
		})
		return i
	}
	testkit.Eventually(w, "another server leads the consumer", func() bool {
		leader, own := info().Cluster.Leader, seller.Conn().ConnectedServerName()
		if leader == own {
			testkit.Must(w, w.js.Conn().Publish("$JS.API.CONSUMER.LEADER.STEPDOWN."+api.InboxStream+"."+found.Name, nil))
		}
		return leader != "" && leader != own
	})
	sells := seller.Session(s.ID())
	_, err = sells.Await(w.ctx, performatives.Propose)
	testkit.Must(w, err)
	listening := seller.Conn().NumSubscriptions()
	testkit.Eventually(w, "the client pulls no more", func() bool {
		return seller.Conn().NumSubscriptions() < listening || info().NumWaiting == 0
	})
	_, err = s.Withdraw(w.ctx, "inv")
	testkit.Must(w, err)
	_, err = sells.Await(w.ctx, performatives.Withdraw)
	testkit.Must(w, err)
	if n := info().Delivered.Consumer; n != 2 {
		w.Errorf("the second message came with delivery %d", n)
	}
}
