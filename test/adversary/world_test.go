package adversary

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	alpha = performatives.Agent("agent://acme.com/procurement/alpha")
	delta = performatives.Agent("agent://acme.com/legal/delta")
	alice = performatives.Agent("human://acme.com/alice") // may decide for acme.com
	carol = performatives.Agent("human://acme.com/carol") // may not
	beta  = performatives.Agent("agent://widgets.co/sales/beta")
	bob   = performatives.Agent("human://widgets.co/bob") // may decide for widgets.co
	eve   = performatives.Agent("agent://evil.example/eve")
	// May decide for an organisation whose name begins like another's.
	mallory = performatives.Agent("human://acme.com.evil.example/mallory")
)

// everyone are all of them.
var everyone = []performatives.Agent{alpha, delta, alice, carol, beta, bob, eve, mallory}

// world is a broker with logins, and the session that is attacked.
type world struct {
	*testkit.World
	deal     performatives.SessionID // of alpha and beta, CONVERSING, with beta's offer p1 open
	oversees *nats.Conn              // the operator's connection, once needed
}

func newWorld(t testing.TB, change ...func(*testkit.Options)) *world {
	t.Helper()
	// No timer goes off while the store is being looked at. What is critical is over soon.
	policy := performatives.Policy{InvitationTimeout: time.Hour.Milliseconds(), MaxDuration: time.Hour.Milliseconds(), EscalationCritical: 2000}
	o := testkit.Options{Sync: time.Minute, Policy: policy, Lag: -1, HTTP: "127.0.0.1:0"} // what is derived is there with the answer
	for _, c := range change {
		c(&o)
	}
	w := &world{World: testkit.NewWorld(t, o)}
	for _, a := range everyone {
		w.Principal(a, func(c *api.Card) { c.Registry.MayDecide = a.IsHuman() && a != carol })
	}
	w.deal = w.opens(alpha, beta)
	w.Principal(beta).Say(w.deal, testkit.Offer("p1", 15000))
	return w
}

// opens makes a session of two, CONVERSING.
func (w *world) opens(from, with performatives.Agent) performatives.SessionID {
	w.Helper()
	return w.Open(w.Principal(from), w.Principal(with))
}

// want says what an attack is answered with.
func want(t testing.TB, what string, m *nats.Msg, code session.Code) {
	t.Helper()
	if got := testkit.Code(t, m); got != code {
		t.Errorf("%s: %q, want %q: %.300s", what, got, code, m.Data)
	}
}
