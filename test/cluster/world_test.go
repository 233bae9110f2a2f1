package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/natsserver"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")

	// patience is how long anything may take that has to happen.
	patience = 2 * time.Minute
)

// programs is where the nats-server program is built.
var programs string

// The test binary is also the broker that is killed.
const childData, childNATS = "PARLEY_CLUSTER_DATA", "PARLEY_CLUSTER_NATS"

func TestMain(m *testing.M) {
	if data := os.Getenv(childData); data != "" {
		serve(data, os.Getenv(childNATS))
		return
	}
	var err error
	if programs, err = os.MkdirTemp("", "parley"); err != nil {
		panic(err)
	}
	status := m.Run()
	if err := os.RemoveAll(programs); err != nil {
		panic(err)
	}
	os.Exit(status)
}

// serve runs a broker until the parent is gone or kills it.
func serve(data, url string) {
	log, err := zap.NewDevelopment(zap.IncreaseLevel(zap.WarnLevel))
	if err != nil {
		panic(err)
	}
	n, err := server.Start(context.Background(), server.Options{Data: data, NATS: url, Replicas: 3, Archive: broker.Archive{After: 100 * time.Millisecond}, Log: log})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("serving", n.Key())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		fmt.Println("failed:", err)
	}
}

// A world is three servers, the brokers on them and their operator.
type world struct {
	*testing.T
	*natsserver.Cluster
	data     string
	ctx      context.Context //nolint:containedctx // the test's own
	operator *client.Operator
	js       jetstream.JetStream // as the broker, in its account
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, data: t.TempDir()}
	config, err := server.Config(w.data)
	w.must(err)
	program, err := natsserver.Build(programs)
	w.must(err)
	w.Cluster = natsserver.StartCluster(t, program, config, 3)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w.ctx = ctx
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// connects logs the operator in, and looks over the brokers' shoulders.
func (w *world) connects() {
	w.Helper()
	var err error
	w.operator, err = client.ConnectOperator(w.ctx, w.URL(), client.SeedFile(w.data+"/"+server.OperatorSeed))
	w.must(err)
	w.Cleanup(func() { w.operator.Close() })
	login, err := nats.NkeyOptionFromSeed(w.data + "/" + server.BrokerSeed)
	w.must(err)
	nc, err := nats.Connect(w.URL(), login, nats.MaxReconnects(-1))
	w.must(err)
	w.Cleanup(nc.Close)
	w.js, err = jetstream.New(nc)
	w.must(err)
}

// A broker is a node in a process of its own.
type process struct {
	cmd *exec.Cmd
	in  io.Closer
}

func (w *world) broker() *process {
	w.Helper()
	return w.brokerAt(w.URL())
}

func (w *world) brokerAt(url string) *process {
	w.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childData+"="+w.data, childNATS+"="+url)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	w.must(err)
	out, err := cmd.StdoutPipe()
	w.must(err)
	w.must(cmd.Start())
	b := &process{cmd, in}
	w.Cleanup(b.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "serving") {
		w.Fatalf("the broker says %q, %v", line, err)
	}
	return b
}

func (b *process) kill() {
	if b.cmd.ProcessState == nil {
		b.cmd.Process.Kill() //nolint:errcheck // it may have ended
		b.cmd.Wait()         //nolint:errcheck // it was killed
	}
}

// joins registers a principal and connects it.
func (w *world) joins(a performatives.Agent) *client.Client {
	w.Helper()
	key, err := nkeys.CreateUser()
	w.must(err)
	signer, err := performatives.NewSigner(key)
	w.must(err)
	_, err = w.operator.AddAgent(w.ctx, api.Card{Agent: a, Key: signer.Key()})
	w.must(err)
	c, err := client.Connect(w.ctx, w.URL(), a, client.Key(signer), client.Timeout(3*time.Second),
		client.NATS(nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2))) // or a paused server keeps it for a minute
	w.must(err)
	w.Cleanup(func() { c.Close() })
	return c
}

// A market is sessions that go on while something happens.
type market struct {
	*world
	beta     *client.Client
	sessions []*client.Session // alpha's side
	acts     atomic.Int64      // accepted and received by the other side
	closing  chan struct{}
	talking  sync.WaitGroup
}

// opens lets alpha and beta negotiate in n sessions, each act answered before the next.
func (w *world) opens(n int) *market {
	w.Helper()
	m := &market{world: w, beta: w.joins(beta), closing: make(chan struct{})}
	buyer := w.joins(alpha)
	for range n {
		s, err := buyer.Invite(w.ctx, client.Invitation{With: []performatives.Agent{beta}, Purpose: "a cluster"})
		w.must(err)
		m.sessions = append(m.sessions, s)
		m.talking.Go(func() {
			if err := m.talk(s, m.beta.Session(s.ID())); err != nil {
				w.Errorf("session %s: %v", s.ID(), err)
			}
		})
	}
	return m
}

func (m *market) talk(buys, sells *client.Session) error {
	read := func(s *client.Session, act performatives.Performative) (*client.Message, error) {
		got, err := s.Await(m.ctx, act)
		if err != nil {
			return nil, fmt.Errorf("waiting for %s: %w", act, err)
		}
		m.acts.Add(1)
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
	for round := 0; ; round++ {
		select {
		case <-m.closing:
			_, err := buys.Close(m.ctx, client.Closing{Outcome: performatives.Completed})
			return err
		default:
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

// goesOn waits until every session has, on average, seen some acts more.
func (m *market) goesOn(acts int) {
	m.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for from := m.acts.Load(); m.acts.Load() < from+int64(acts*len(m.sessions)); {
		select {
		case <-tick.C:
		case <-m.ctx.Done():
			m.Fatalf("the sessions stand still after %d acts", m.acts.Load())
		}
	}
}
