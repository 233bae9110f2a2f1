package fault_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// TestKilledUnderLoad kills the broker's process again and again while sessions
// go on, and then holds everything that was promised against what is there.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const kills = 5
	data := t.TempDir()
	c := startNode(t, data, "127.0.0.1:-1")
	k := startTalk(t, c.URL, 2, 1)
	for range kills {
		k.after(3)
		c.Kill()
		c = again(t, data, c)
	}
	k.check(t, c.URL, kills, "kills")
	c.Kill()
	again(t, data, c)
	for _, s := range k.sessions {
		s.Again()
		s.Check(parties...)
	}
}

// TestKilledWhileDeadlinesPass: what fell due while nobody was there falls due
// when somebody is again.
func TestKilledWhileDeadlinesPass(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	c := startNode(t, data, "127.0.0.1:-1")
	w := fault.NewWitness(t, c.URL)
	s := w.Invite(alpha, beta, 700*time.Millisecond)
	c.Kill()
	c = testkit.StartBrokerProcess(t, testkit.ProcessOptions{Data: data, Listen: strings.TrimPrefix(c.URL, "nats://"), Dev: true, Ahead: time.Second})
	s.Closed(beta, "invitation_timeout")
	s.Again()
	s.Check(alpha, beta)
	verifyAll(t, c.URL)
}
