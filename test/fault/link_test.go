//go:build long

package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// mostOld is what OPERATIONS.md says of how old a reading may be where the
// transcripts' leader has lost one server, with room for a slow machine.
const mostOld = 2500 * time.Millisecond

// mayLag is MayLag of every session, by what OPERATIONS.md says.
func mayLag(talks []*talk) (until func()) {
	var ends []func()
	for _, k := range talks {
		for _, s := range k.sessions {
			ends = append(ends, s.MayLag(mostOld))
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// TestLinkCut cuts only the link from the transcripts' leader to another server,
// which gets itself elected by the third one. Acts are said there and nowhere
// else, so that the leader before learns of nothing, and a session is read beside
// it: what is read may be old, and not for longer than is said.
func TestLinkCut(t *testing.T) {
	if !alone(t) {
		return
	}
	l := startLAN(t)
	keys := t.TempDir()
	for i := 1; i <= 3; i++ {
		startReplicated(t, keys, address(i))
	}
	cuts := 4
	if testing.Short() {
		cuts = 1
	}
	for range cuts {
		healthy(t)
		was, err := strconv.Atoi(strings.TrimPrefix(leader(t, address(1), api.SessionsStream), "n"))
		testkit.Must(t, err)
		other := 1 + was%3
		w := fault.NewWitness(t, address(other))
		mend := func() {}
		old := readWhileCut(w, w.Beside(address(was)), func() {
			mend = l.cut(fmt.Sprintf("p%d%d", was, other))
			for _, beside := range []int{other, was} { // until both sides know of another leader
				testkit.Eventually(t, host(beside)+" knows of another leader", func() bool { return leader(t, address(beside), api.SessionsStream) != host(was) })
			}
		})
		mend()
		t.Logf("%s, which led, was cut off from %s: %s", host(was), host(other), old)
		if old.most > mostOld {
			t.Errorf("a reading was %s old", old.most)
		}
		if old.readings == 0 || old.acts == 0 {
			t.Error("nothing was said, or nothing read")
		}
	}
}

// healthy waits until each server says that it has caught up with the others.
func healthy(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for i := 1; i <= 3; i++ {
		testkit.Must(t, testkit.Serving(ctx, http.DefaultClient, fmt.Sprintf("http://10.9.0.%d:8222/healthz", i)))
	}
}

// An age says of readings how old they were at most: for how long there had been
// an acceptance, when they were asked, of which they knew nothing.
type age struct {
	acts, readings, stale int
	most                  time.Duration
}

func (a age) String() string {
	return fmt.Sprintf("%d acts, %d readings, %d of them old, by %s at most", a.acts, a.readings, a.stale, a.most)
}

// readWhileCut has one witness speak and the other one read until what happens meanwhile is
// over, and for some acts more.
func readWhileCut(speaks, reads *fault.Witness, happens func()) (old age) {
	s := speaks.Open(alpha, beta)
	var mu sync.Mutex
	var accepted []time.Time // of the entries from the third on
	stop, said := make(chan struct{}), make(chan struct{}, 1)
	var both sync.WaitGroup
	running := func() bool {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	both.Go(func() {
		for n := 0; running(); n++ {
			s.Say(alpha, "OBSERVE", fmt.Sprintf(`{"subject":"remark %d"}`, n))
			mu.Lock()
			accepted = append(accepted, time.Now())
			mu.Unlock()
			select {
			case said <- struct{}{}:
			default:
			}
		}
	})
	both.Go(func() {
		for running() {
			asked := time.Now()
			entries, answered := s.SeenFrom(reads, beta)
			if !answered {
				continue
			}
			old.readings++
			mu.Lock()
			if seen := int(entries) - 2; seen < len(accepted) { //nolint:gosec // a few hundred
				if by := asked.Sub(accepted[max(seen, 0)]); by > 0 {
					old.stale++
					old.most = max(old.most, by)
				}
			}
			mu.Unlock()
		}
	})
	happens()
	for range 100 {
		<-said
	}
	close(stop)
	both.Wait()
	old.acts = len(accepted)
	return old
}
