package fault_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")
	gamma = performatives.Agent("agent://gizmo.io/gamma")
)

var parties = []performatives.Agent{alpha, beta, gamma}

// A talk is load: sessions in which all parties speak at once, until they are
// told to stop.
type talk struct {
	*fault.Witness
	sessions []*fault.Session
	answered atomic.Int64
	turns    chan struct{} // acts that may still be said
	beats    chan struct{} // there is news of answered
	stop     chan struct{}
	over     chan struct{} // nobody speaks any more
	speaking sync.WaitGroup
}

const (
	apart    = 40     // answers that a beat stands for
	mostActs = 10_000 // more than a test lets its parties say
)

func startTalk(t testing.TB, url string, sessions int, seed uint64) *talk {
	t.Helper()
	return talkOf(fault.NewWitness(t, url), sessions, seed)
}

func talkOf(w *fault.Witness, sessions int, seed uint64) *talk {
	k := &talk{Witness: w, stop: make(chan struct{}), turns: make(chan struct{}, mostActs), beats: make(chan struct{}, 1), over: make(chan struct{})}
	for i := range sessions {
		s := k.Open(parties...)
		k.sessions = append(k.sessions, s)
		k.speaking.Go(func() { k.haggle(s) })
		for n, party := range parties {
			random := rand.New(rand.NewPCG(seed, uint64(i*len(parties)+n)))
			k.speaking.Go(func() { k.speak(s, party, random) })
		}
	}
	go func() { k.speaking.Wait(); close(k.over) }()
	return k
}

// counts notes an answer, and reports whether to go on.
func (k *talk) counts() bool {
	k.answered.Add(1)
	select {
	case k.beats <- struct{}{}:
	default:
	}
	select {
	case <-k.stop:
		return false
	case <-k.turns:
		return !k.Failed()
	}
}

// speak says what anybody may say at any time; some of it only if nobody was
// faster; and now and then reads.
func (k *talk) speak(s *fault.Session, party performatives.Agent, random *rand.Rand) {
	next := s.Next(party)
	for n := 0; k.counts(); n++ {
		switch random.IntN(4) {
		case 0:
			next = s.Next(party)
		case 1, 2:
			next = s.SayAt(party, "INFORM", fmt.Sprintf(`{"type":"fact","data":%d}`, n), next)
		case 3:
			s.Say(party, "OBSERVE", fmt.Sprintf(`{"subject":"remark %d"}`, n))
		}
	}
}

// haggle goes round and round: an offer, a counter-offer, its acceptance.
func (k *talk) haggle(s *fault.Session) {
	for n := 0; k.counts(); n++ {
		haggle(s, n)
	}
}

// after waits for so many beats, unless the talk has come to a bad end. The parties have turns
// for twice as many acts: there is load when the next fault comes, and transcripts stay short
// enough to be judged.
func (k *talk) after(beats int64) {
	k.allow(2 * beats * apart)
	for enough := k.answered.Load() + beats*apart; k.answered.Load() < enough; {
		select {
		case <-k.beats:
		case <-k.over:
			return
		}
	}
}

// allow gives the parties turns for so many acts more.
func (k *talk) allow(acts int64) {
	for range acts {
		select {
		case k.turns <- struct{}{}:
		default:
		}
	}
}

// A tally is how much was asked and answered, and what happened meanwhile.
type tally struct {
	answers int64
	faults  int
}

// check ends the talk and holds everything that was promised against what is
// there.
func (k *talk) check(t testing.TB, url string, faults int, what string) tally {
	t.Helper()
	close(k.stop)
	<-k.over
	for _, s := range k.sessions {
		s.Again()
		s.Say(alpha, "CLOSE", "{}")
		s.Check(parties...)
	}
	verifyAll(t, url)
	t.Logf("%d answers, %d %s", k.answered.Load(), faults, what)
	return tally{k.answered.Load(), faults}
}

// verifyAll is `parley session verify --all`.
func verifyAll(t testing.TB, url string) {
	t.Helper()
	program, err := parley()
	testkit.Must(t, err)
	cmd := exec.Command(program, "session", "verify", "--all", "--url", url, "--data", t.TempDir(), "--timeout", "2m")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "ok ") {
		t.Errorf("%s: %v\n%s", strings.Join(cmd.Args[1:], " "), err, out)
	}
}

// haggle is the n-th act of a conversation that may go on for ever.
func haggle(s *fault.Session, n int) {
	round := n / 4
	switch n % 4 {
	case 0:
		s.Say(alpha, "PROPOSE", fmt.Sprintf(`{"proposalId":"p%d","type":"x","subject":"x","terms":{"price":%d}}`, round, round))
	case 1:
		s.Say(beta, "COUNTER", fmt.Sprintf(`{"proposalId":"c%d","referenceId":"p%d","terms":{"price":%d}}`, round, round, round+1))
	case 2:
		s.Say(alpha, "ACCEPT", fmt.Sprintf(`{"referenceId":"c%d"}`, round))
	case 3:
		s.Say(gamma, "OBSERVE", fmt.Sprintf(`{"subject":"round %d"}`, round))
	}
}
