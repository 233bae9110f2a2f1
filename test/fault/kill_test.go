package fault_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/broker"
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

// TestKilledAtEachPoint kills a broker's process at each point of an act's way.
// With its server in it, the broker is started again; at a server elsewhere,
// another broker takes over within 5 s.
func TestKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, point := range broker.Points() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			c := startNode(t, data, "127.0.0.1:-1")
			w := fault.NewWitness(t, c.url)
			s := w.Open(parties...)
			c.tell("die " + point)
			dyingAt(t, s, c)
			startNode(t, data, strings.TrimPrefix(c.url, "nats://"))
			s.Again()
			s.Say(gamma, "OBSERVE", `{"subject":"on we go"}`)
			s.Check(parties...)
			verifyAll(t, c.url)
		})
		t.Run(point+", two brokers", func(t *testing.T) {
			t.Parallel()
			at := startServer(t, t.TempDir())
			c := startBroker(t, at)
			w := fault.NewWitness(t, at.url)
			s := w.Open(parties...)
			startBroker(t, at)
			c.tell("die " + point)
			dyingAt(t, s, c)
			died := time.Now()
			s.Untouched(alpha, gamma)
			late := time.Since(died)
			if t.Logf("everything was delivered %s after the death", late); late > takeover {
				t.Errorf("that is more than %s", takeover)
			}
			s.Again()
			s.Say(gamma, "OBSERVE", `{"subject":"on we go"}`)
			s.Check(parties...)
			verifyAll(t, at.url)
		})
	}
}

// takeover is how long what a dead broker left undone may stay so, and what a
// machine that is busy with other tests adds.
const takeover = 5*time.Second + 3*time.Second

// dyingAt speaks until the broker is dead.
func dyingAt(t *testing.T, s *fault.Session, c *child) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dead := make(chan struct{})
	go func() { c.dies(); cancel(); close(dead) }()
	for ctx.Err() == nil {
		s.SayOnce(ctx, beta, "OBSERVE", `{"subject":"x"}`)
	}
	<-dead
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
