package client_test

import (
	"context"
	"log"
	"os"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testbroker"
)

const (
	alpha = performatives.Agent("agent://acme.com/procurement/alpha")
	beta  = performatives.Agent("agent://widgets.co/sales/beta")
	gamma = performatives.Agent("agent://acme.com/legal/gamma")
	alice = performatives.Agent("human://acme.com/alice")

	patience = 30 * time.Second // for what must come
)

// world is a broker with logins, and the clients of one test.
type world struct {
	*testbroker.Broker
	t     testing.TB
	ctx   context.Context //nolint:containedctx // a test's
	seeds map[performatives.Agent]string
}

func start(t testing.TB, o testbroker.Options) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return &world{testbroker.Start(t, o), t, ctx, map[performatives.Agent]string{}}
}

// as connects a principal, which is registered when it comes first.
func (w *world) as(a performatives.Agent, options ...client.Option) *client.Client {
	w.t.Helper()
	c := must(client.Connect(w.ctx, w.URL, a, append([]client.Option{client.Seed(w.seed(a))}, options...)...))(w.t)
	w.t.Cleanup(func() { c.Close() })
	return c
}

func (w *world) seed(a performatives.Agent) string {
	w.t.Helper()
	if w.seeds[a] == "" {
		w.seeds[a] = string(must(w.Register(a).Seed())(w.t))
	}
	return w.seeds[a]
}

// introduced is a session that the other side has accepted, as both see it.
func (w *world) introduced(a, b *client.Client) (*client.Session, *client.Session) {
	w.t.Helper()
	ours := must(a.Invite(w.ctx, client.Invitation{With: []performatives.Agent{b.Agent()}, Purpose: "a test"}))(w.t)
	invitation := must(b.Await(w.ctx, performatives.Propose))(w.t)
	theirs := invitation.Session()
	must(theirs.Accept(w.ctx, invitation.Ref()))(w.t)
	must(ours.Await(w.ctx, performatives.Accept))(w.t)
	return ours, theirs
}

// offer is something to propose.
func offer(price int) client.Proposal {
	return client.Proposal{Type: "service-agreement", Subject: "ingestion", Terms: map[string]any{"price": price}}
}

func (w *world) state(s *client.Session) session.Phase {
	w.t.Helper()
	return must(s.View(w.ctx))(w.t).State
}

func must[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// An example has no testing.TB to start a broker with; process stands in.
type process struct {
	testing.TB
	cleanups []func()
}

func (p *process) Helper()           {}
func (p *process) Cleanup(f func())  { p.cleanups = append(p.cleanups, f) }
func (p *process) Fatal(args ...any) { log.Fatal(args...) }
func (p *process) Error(args ...any) { log.Print(args...) }

func (p *process) TempDir() string {
	dir, err := os.MkdirTemp("", "parley")
	if err != nil {
		log.Fatal(err)
	}
	p.Cleanup(func() { check(os.RemoveAll(dir)) })
	return dir
}

// forExample is a world that ends with the example.
func forExample() (w *world, end func()) {
	p := &process{}
	return start(p, testbroker.Options{}), func() {
		for i := len(p.cleanups) - 1; i >= 0; i-- {
			p.cleanups[i]()
		}
	}
}

// check and try stop an example that goes wrong.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func try[V any](v V, err error) V {
	check(err)
	return v
}

// everything is the filter that leaves nothing out.
var everything = api.ListEscalations{Status: "all"}
