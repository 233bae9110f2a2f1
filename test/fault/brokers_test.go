package fault_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// TestBrokersKilled kills one of three brokers at a time, at random and under
// load, and starts it again.
func TestBrokersKilled(t *testing.T) {
	t.Parallel()
	brokersKilled(t, 1, 4)
}

func brokersKilled(t *testing.T, seed uint64, kills int) tally {
	random := rand.New(rand.NewPCG(seed, 0))
	at := testkit.StartServerProcess(t, onDisk)
	brokers := []*testkit.BrokerProcess{startBroker(t, at), startBroker(t, at), startBroker(t, at)}
	k := startTalk(t, at.URL(), 2, seed)
	for range kills {
		k.after(1 + random.Int64N(3))
		n := random.IntN(len(brokers))
		brokers[n].Kill()
		k.after(1 + random.Int64N(3))
		brokers[n] = startBroker(t, at)
	}
	return k.check(t, at.URL(), kills, "kills of brokers")
}

// TestServerKilled kills the NATS server under two brokers.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	serverKilled(t, 2, 3)
}

func serverKilled(t *testing.T, seed uint64, kills int) tally {
	at := testkit.StartServerProcess(t, onDisk)
	startBroker(t, at)
	startBroker(t, at)
	k := startTalk(t, at.URL(), 2, seed)
	for range kills {
		k.after(2)
		at.Kill()
		at.Start()
	}
	return k.check(t, at.URL(), kills, "kills of the server")
}

// TestPaused stops a broker for longer than the others wait for it, so that they
// take its work over. Then it goes on, with all that it remembers of sessions
// that have moved on, and with the requests that waited for it meanwhile.
func TestPaused(t *testing.T) {
	t.Parallel()
	paused(t, 3, 1)
}

func paused(t *testing.T, seed uint64, pauses int) tally {
	at := testkit.StartServerProcess(t, onDisk)
	brokers := []*testkit.BrokerProcess{startBroker(t, at), startBroker(t, at)}
	k := startTalk(t, at.URL(), 2, seed)
	for n := range pauses {
		k.after(2)
		c := brokers[n%len(brokers)]
		recovered := k.Recovered()
		c.Pause()
		recovered()
		k.after(1)
		c.Resume()
		k.after(2)
	}
	return k.check(t, at.URL(), pauses, "pauses")
}

// TestWokenUp stops one of two brokers, which so has acts that it has not read. The other
// refuses them. Then what was missing comes about, and the first goes on: it must
// not hear now what its sender was told is refused.
func TestWokenUp(t *testing.T) {
	t.Parallel()
	at := testkit.StartServerProcess(t, onDisk)
	stopped := startBroker(t, at)
	startBroker(t, at)
	w := fault.NewWitness(t, at.URL())
	const sessions, copies = 6, 8
	var all []*fault.Session
	for range sessions {
		all = append(all, w.Open(alpha, beta))
	}
	recovered := w.Recovered()
	stopped.Pause()
	var answers []*nats.Subscription
	for _, s := range all {
		answers = append(answers, s.Refused(beta, "ACCEPT", `{"referenceId":"p1"}`, copies))
	}
	for _, s := range all {
		s.Say(alpha, "PROPOSE", `{"proposalId":"p1","type":"t","subject":"x","terms":{}}`)
	}
	recovered() // its peers may refuse what it has not read: until then it may still be right
	stopped.Resume()
	for _, sub := range answers {
		for range copies {
			m, err := sub.NextMsg(time.Minute)
			testkit.Must(t, err)
			if m.Header.Get(api.ErrorCodeHeader) == "" {
				t.Errorf("answered after it was refused: %s", m.Data)
			}
		}
	}
	for _, s := range all {
		s.Check(alpha, beta)
	}
}

// TestClockJumps sets the clocks of two brokers apart, forward and backward, as
// far as senders are still answered.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	clockJumps(t, 4, 6)
}

func clockJumps(t *testing.T, seed uint64, jumps int) tally {
	random := rand.New(rand.NewPCG(seed, 0))
	at := testkit.StartServerProcess(t, onDisk)
	brokers := []*testkit.BrokerProcess{startBroker(t, at), startBroker(t, at)}
	k := startTalk(t, at.URL(), 2, seed)
	for n := range jumps {
		k.after(1)
		off := time.Duration(random.Int64N(int64(8*time.Minute))) - 4*time.Minute
		brokers[n%len(brokers)].SetClock(off)
	}
	k.after(2)
	for _, c := range brokers {
		c.SetClock(0)
	}
	return k.check(t, at.URL(), jumps, "jumps of clocks")
}

// TestPausedAtDeadlines stops one of two brokers while deadlines pass, and then
// the other one. Those whose timers went off at the one that is stopped are looked
// at by the one that is not.
func TestPausedAtDeadlines(t *testing.T) {
	t.Parallel()
	at := testkit.StartServerProcess(t, onDisk)
	brokers := []*testkit.BrokerProcess{startBroker(t, at), startBroker(t, at)}
	w := fault.NewWitness(t, at.URL())
	for _, c := range brokers {
		var sessions []*fault.Session
		for range 6 {
			sessions = append(sessions, w.Invite(alpha, beta, time.Second))
		}
		c.Pause()
		for _, s := range sessions {
			t.Logf("a deadline ended its session %s after it had passed", s.Late(beta))
		}
		c.Resume()
	}
}
