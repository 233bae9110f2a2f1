package bench

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

var stored = flag.Int("stored", 1000, "finished sessions that BenchmarkStored has one of its brokers store")

// BenchmarkStored is an act where 100 finished sessions are stored, and, turn and turn about, one
// where many are; and how long the broker with many takes from its start to the first act that it
// accepts, after it was stopped and after its server was cut off.
func BenchmarkStored(b *testing.B) {
	const few = 100
	little, much := newShelf(b, few), newShelf(b, max(few, *stored))
	var inLittle, inMuch spans
	for b.Loop() {
		for _, at := range []struct {
			*shelf
			*spans
		}{{little, &inLittle}, {much, &inMuch}} {
			id := at.session(2)
			envelope := at.act(id, beta, remark())
			at.time(func() { at.submit(id, beta, envelope) })
		}
	}
	b.ReportMetric(inLittle.at(.5), "of-100-µs-p50")
	b.ReportMetric(inMuch.at(.5), fmt.Sprintf("of-%d-µs-p50", *stored))
	b.ReportMetric(inMuch.at(.5)/inLittle.at(.5), "ratio-p50")
	id := much.session(2)
	for after, end := range map[string]func(){"stopped": much.world.Down, "cut-off": much.world.Crash} {
		end()
		start := time.Now()
		much.world.Up()
		much.enter()
		much.submit(id, beta, much.act(id, beta, remark()))
		b.ReportMetric(time.Since(start).Seconds(), "start-"+after+"-s")
	}
}

// unlimited lets one client fill a store.
var unlimited = limits.Limits{Rate: 1e9, Burst: -1, Sessions: -1, InFlight: -1}

// A shelf is a site that stores finished sessions, and can be started again.
type shelf struct {
	*site
	world *testkit.World
}

// newShelf fills one.
func newShelf(b *testing.B, sessions int) *shelf {
	b.Helper()
	s := &shelf{&site{TB: b}, testkit.NewWorld(b, testkit.Options{Sync: time.Minute, Limits: unlimited})}
	s.enter()
	s.fill(sessions, func(id performatives.SessionID) {
		s.open(id)
		s.submit(id, alpha, s.act(id, alpha, &performatives.CloseBody{Outcome: performatives.Completed}))
	})
	return s
}

// fill makes sessions, many at a time.
func (s *shelf) fill(n int, each func(id performatives.SessionID)) {
	var g errgroup.Group
	g.SetLimit(64)
	for range n {
		g.Go(func() error {
			each(testkit.NewSession())
			return nil
		})
	}
	testkit.Must(s, g.Wait())
}

// enter connects alpha and beta, again after a start.
func (s *shelf) enter() {
	s.people = map[performatives.Agent]person{}
	for _, a := range []performatives.Agent{alpha, beta} {
		p := s.world.Principal(a)
		s.people[a] = person{p.Signer, p.Conn()}
	}
}
