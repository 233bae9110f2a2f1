//go:build long

package fault_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/test/testkit"
)

// lasting is how long TestLong goes on.
var lasting = flag.Duration("for", 10*time.Minute, "how long the long form goes on")

// TestLong plays the faults of the short tests again and again, each time with
// another seed and more of them, and says how many there were.
func TestLong(t *testing.T) {
	var all tally
	runs := 0
	for seed, end := uint64(1000), time.Now().Add(*lasting); runs == 0 || time.Now().Before(end) && !t.Failed(); seed++ {
		for _, s := range []struct {
			name string
			play func(*testing.T, uint64, int) tally
			most int
		}{
			{"brokers killed", brokersKilled, 12},
			{"server killed", serverKilled, 6},
			{"paused", paused, 4},
			{"clocks", clockJumps, 30},
			{"cluster", clusterKilled, 6},
			{"leaders", leadersKilled, 20 * len(ledStreams)},
		} {
			t.Run(s.name, func(t *testing.T) {
				if t.Logf("seed %d", seed); testing.Short() {
					s.most = 1
				}
				one := s.play(t, seed, s.most)
				all.answers, all.faults, runs = all.answers+one.answers, all.faults+one.faults, runs+1
			})
		}
	}
	t.Logf("%d runs, %d faults, %d answers", runs, all.faults, all.answers)
}

// clusterKilled kills servers of a cluster of three, one at a time: the leader of the transcripts and
// another one, in turn. TestLeadersKilled does so in every run of the tests.
func clusterKilled(t *testing.T, seed uint64, kills int) tally {
	random := rand.New(rand.NewPCG(seed, 0))
	c := testkit.StartCluster(t, onDisk, 3)
	keys := t.TempDir()
	for range 3 {
		startReplicated(t, keys, c.URL())
	}
	k := startTalk(t, c.URL(), 2, seed)
	for n := range kills {
		k.after(2)
		victim := c.Servers[random.IntN(len(c.Servers))]
		if n%2 == 0 {
			victim = c.Named(leader(t, c.URL(), api.SessionsStream))
		}
		victim.Kill()
		k.after(2)
		victim.Start()
		c.Healthy()
	}
	return k.check(t, c.URL(), kills, "kills of servers of a cluster")
}
