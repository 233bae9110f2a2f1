package fault_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/test/fault"
)

// TestKilledUnderLoad kills the broker's process again and again while sessions
// go on, and then holds everything that was promised against what is there.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const kills = 5
	data := t.TempDir()
	c := startNode(t, data, "127.0.0.1:-1")
	listen := strings.TrimPrefix(c.url, "nats://")
	k := startTalk(t, c.url, 2, 1)
	for range kills {
		k.after(3)
		c.kill()
		c = startNode(t, data, listen)
	}
	k.check(t, c.url, kills, "kills")
	c.kill()
	startNode(t, data, listen)
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
	w := fault.NewWitness(t, c.url)
	s := w.Invite(alpha, beta, 700*time.Millisecond)
	c.kill()
	<-time.After(time.Until(s.Deadline)) // time itself has to pass here
	c = startNode(t, data, strings.TrimPrefix(c.url, "nats://"))
	s.Closed(beta, "invitation_timeout")
	s.Again()
	s.Check(alpha, beta)
	verifyAll(t, c.url)
}
