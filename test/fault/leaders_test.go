package fault_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// deliveredWithin is how long a copy of an accepted act may take, while servers elect leaders.
const deliveredWithin = 15 * time.Second

// ledStreams are those that an act goes through, each with a leader of its own.
var ledStreams = []string{api.SessionsStream, api.InboxStream, api.TimersStream, api.IndexStream, api.StreamOf(api.BrokersBucket)}

// TestLeadersKilled kills the server that leads a stream, under load, and holds the time of each inbox
// copy against that of its entry. Nobody restarts a broker.
func TestLeadersKilled(t *testing.T) {
	t.Parallel()
	leadersKilled(t, 6, 2)
}

func leadersKilled(t *testing.T, seed uint64, kills int) tally {
	random := rand.New(rand.NewPCG(seed, 0))
	c := testkit.StartCluster(t, onDisk, 3)
	keys := t.TempDir()
	for range 3 {
		startReplicated(t, keys, c.URL())
	}
	k := startTalk(t, c.URL(), 2, seed)
	opened := opens(k, k.Beside(c.URL()))
	for n := range kills {
		k.after(1 + random.Int64N(2))
		victim := c.Named(leader(t, c.URL(), ledStreams[n%len(ledStreams)]))
		victim.Kill()
		k.after(2)
		victim.Start()
		c.Healthy()
	}
	k.after(1)
	all := k.check(t, c.URL(), kills, "kills of leaders")
	k.sessions = append(k.sessions, <-opened...)
	slowest, copies := time.Duration(0), 0
	for _, s := range k.sessions {
		s.Delivered(parties...)
		took, n := s.SlowestCopy(parties...)
		slowest, copies = max(slowest, took), copies+n
		if took > deliveredWithin {
			t.Errorf("session %s: a copy came %s after its act, want at most %s", s.ID, took, deliveredWithin)
		}
	}
	t.Logf("%d copies in %d sessions; the slowest came %s after its act", copies, len(k.sessions), slowest)
	return all
}

// opens begins and ends one session after the other while the talk goes on, in turn with it: the first copies of
// an inbox are as much at risk as later ones.
func opens(k *talk, w *fault.Witness) <-chan []*fault.Session {
	done := make(chan []*fault.Session, 1)
	go func() {
		var all []*fault.Session
		for k.counts() {
			s := w.Open(parties...)
			s.Say(parties[0], "CLOSE", "{}")
			all = append(all, s)
		}
		done <- all
	}()
	return done
}

// leader is the server that leads a stream.
func leader(t testing.TB, url, stream string) string {
	t.Helper()
	nc, err := nats.Connect(url)
	testkit.Must(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	testkit.Must(t, err)
	var leads string
	testkit.Eventually(t, stream+" has a leader", func() bool {
		one, cancel := context.WithTimeout(context.Background(), time.Second) // what is asked in an election may be lost
		defer cancel()
		s, err := js.Stream(one, stream)
		if err == nil {
			leads = s.CachedInfo().Cluster.Leader
		}
		return leads != ""
	})
	return leads
}
