package fault_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/test/fault"
)

// TestBrokersKilled kills one of three brokers at a time, at random and under
// load, and starts it again.
func TestBrokersKilled(t *testing.T) {
	t.Parallel()
	brokersKilled(t, 1, 6)
}

func brokersKilled(t *testing.T, seed uint64, kills int) tally {
	random := rand.New(rand.NewPCG(seed, 0))
	at := startServer(t, t.TempDir())
	brokers := []*child{startBroker(t, at), startBroker(t, at), startBroker(t, at)}
	k := startTalk(t, at.url, 2, seed)
	for range kills {
		k.after(1 + random.Int64N(3))
		n := random.IntN(len(brokers))
		brokers[n].kill()
		k.after(1 + random.Int64N(3))
		brokers[n] = startBroker(t, at)
	}
	return k.check(t, at.url, kills, "kills of brokers")
}

// TestServerKilled kills the NATS server under two brokers.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	serverKilled(t, 2, 3)
}

func serverKilled(t *testing.T, seed uint64, kills int) tally {
	at := startServer(t, t.TempDir())
	startBroker(t, at)
	startBroker(t, at)
	k := startTalk(t, at.url, 2, seed)
	for range kills {
		k.after(2)
		at.kill()
		at.start()
	}
	return k.check(t, at.url, kills, "kills of the server")
}

// TestPaused stops a broker for longer than the others wait for it, so that they
// take its work over. Then it goes on, with all that it remembers of sessions
// that have moved on, and with the requests that waited for it meanwhile.
func TestPaused(t *testing.T) {
	t.Parallel()
	paused(t, 3, 1)
}

func paused(t *testing.T, seed uint64, pauses int) tally {
	at := startServer(t, t.TempDir())
	brokers := []*child{startBroker(t, at), startBroker(t, at)}
	k := startTalk(t, at.url, 2, seed)
	for n := range pauses {
		k.after(2)
		c := brokers[n%len(brokers)]
		c.pause()
		<-time.After(silent) // time itself has to pass here
		k.after(1)
		c.resume()
		k.after(2)
	}
	return k.check(t, at.url, pauses, "pauses")
}

// TestWokenUp stops one of two brokers, which so has acts that it has not read. The other
// refuses them. Then what was missing comes about, and the first goes on: it must
// not hear now what its sender was told is refused.
func TestWokenUp(t *testing.T) {
	t.Parallel()
	at := startServer(t, t.TempDir())
	stopped := startBroker(t, at)
	startBroker(t, at)
	w := fault.NewWitness(t, at.url)
	const sessions, copies = 6, 8
	var all []*fault.Session
	for range sessions {
		all = append(all, w.Open(alpha, beta))
	}
	stopped.pause()
	var answers []*nats.Subscription
	for _, s := range all {
		answers = append(answers, s.Refused(beta, "ACCEPT", `{"referenceId":"p1"}`, copies))
	}
	for _, s := range all {
		s.Say(alpha, "PROPOSE", `{"proposalId":"p1","type":"t","subject":"x","terms":{}}`)
	}
	stopped.resume()
	for _, heard := range answers {
		for range copies {
			m, err := heard.NextMsg(time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if m.Header.Get(api.ErrorCodeHeader) == "" {
				t.Errorf("heard after it was refused: %s", m.Data)
			}
		}
	}
	for _, s := range all {
		s.Check(alpha, beta)
	}
}

// silent is longer than a broker may be silent and not be taken for dead.
const silent = 6 * time.Second

// TestClockJumps sets the clocks of two brokers apart, forward and backward, as
// far as senders are still heard.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	clockJumps(t, 4, 6)
}

func clockJumps(t *testing.T, seed uint64, jumps int) tally {
	random := rand.New(rand.NewPCG(seed, 0))
	at := startServer(t, t.TempDir())
	brokers := []*child{startBroker(t, at), startBroker(t, at)}
	k := startTalk(t, at.url, 2, seed)
	for n := range jumps {
		k.after(1)
		off := time.Duration(random.Int64N(int64(8*time.Minute))) - 4*time.Minute
		brokers[n%len(brokers)].tell("clock " + off.String())
	}
	k.after(2)
	for _, c := range brokers {
		c.tell("clock 0s")
	}
	return k.check(t, at.url, jumps, "jumps of clocks")
}

// TestPausedAtDeadlines stops one of two brokers while deadlines pass, and then
// the other one. Those whose timers went off at the one that is stopped are soon
// looked at by the one that is not.
func TestPausedAtDeadlines(t *testing.T) {
	t.Parallel()
	at := startServer(t, t.TempDir())
	brokers := []*child{startBroker(t, at), startBroker(t, at)}
	w := fault.NewWitness(t, at.url)
	for _, c := range brokers {
		var sessions []*fault.Session
		for range 6 {
			sessions = append(sessions, w.Invite(alpha, beta, time.Second))
		}
		c.pause()
		for _, s := range sessions {
			if late := s.Late(beta); late > takenOver {
				t.Errorf("a deadline ended its session %s after it had passed", late)
			}
		}
		c.resume()
	}
}

// takenOver is how long what a broker had to do may wait for another one.
const takenOver = 5 * time.Second
