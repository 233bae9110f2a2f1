//go:build long

package fault_test

import (
	"flag"
	"testing"
	"time"
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
