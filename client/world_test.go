package client_test

import (
	"log"
	"os"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	alpha = performatives.Agent("agent://acme.com/procurement/alpha")
	beta  = performatives.Agent("agent://widgets.co/sales/beta")
	gamma = performatives.Agent("agent://acme.com/legal/gamma")
	alice = performatives.Agent("human://acme.com/alice")
)

// world is a broker with logins, and the clients of one test.
type world struct{ *testkit.World }

func start(t testing.TB, o testkit.Options) world {
	t.Helper()
	return world{testkit.NewWorld(t, o)}
}

// seed is that of a principal's key.
func (w world) seed(a performatives.Agent) string {
	w.Helper()
	return string(must(w.Principal(a).Key.Seed())(w))
}

// login is how a principal logs in.
func (w world) login(a performatives.Agent) client.Option {
	w.Helper()
	return client.Login(testkit.Signer(w, testkit.LoginOf(w, w.Principal(a).Key)))
}

// introduced is a session that the other side has accepted, as both see it.
func (w world) introduced(a, b *client.Client) (*client.Session, *client.Session) {
	w.Helper()
	ours := must(a.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{b.Agent()}, Purpose: "a test"}))(w)
	invitation := must(b.Await(w.Ctx, performatives.Propose))(w)
	theirs := invitation.Session()
	must(theirs.Accept(w.Ctx, invitation.Ref()))(w)
	must(ours.Await(w.Ctx, performatives.Accept))(w)
	return ours, theirs
}

// offer is something to propose.
func offer(price int) client.Proposal {
	return client.Proposal{Type: "service-agreement", Subject: "ingestion", Terms: map[string]any{"price": price}}
}

func (w world) state(s *client.Session) session.Phase {
	w.Helper()
	return must(s.View(w.Ctx))(w).State
}

func must[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		testkit.Must(t, err)
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
func forExample() (w world, end func()) {
	p := &process{}
	return start(p, testkit.Options{}), func() {
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
