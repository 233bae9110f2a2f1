package bench

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

var (
	quiet     = flag.Int("quiet", 500, "sessions that BenchmarkQuiet has stored")
	deadlines = flag.Int("deadlines", 100, "obligations that fall due in BenchmarkDue")
	within    = flag.Duration("within", time.Second, "the time in which they do")
)

// BenchmarkQuiet is how long a broker takes from its start to the first act that it accepts, and the memory that
// it holds then, where many sessions wait in EXECUTING for a deadline far off; and, for comparison, where as
// many are finished. The NATS server is in another process.
func BenchmarkQuiet(b *testing.B) {
	for _, waits := range []bool{false, true} {
		name := map[bool]string{false: "finished", true: "executing"}[waits]
		b.Run(fmt.Sprintf("%s-%d", name, *quiet), func(b *testing.B) {
			data := b.TempDir()
			url := testkit.StartServerProcess(b, must(server.Config(data, testkit.Shards))).URL()
			w := testkit.NewWorld(b, testkit.Options{Data: data, NATS: url, Limits: unlimited})
			s := &shelf{&site{TB: b}, w}
			s.enter()
			far := time.Now().Add(30 * 24 * time.Hour)
			s.fill(*quiet, func(id performatives.SessionID) {
				s.agree(id, 1, far, far)
				if !waits {
					s.submit(id, alpha, s.act(id, alpha, &performatives.CloseBody{Outcome: performatives.Abandoned}))
				}
			})
			var starts spans
			var held float64
			for b.Loop() {
				w.Down()
				starts.time(func() {
					w.Up()
					s.enter()
					s.session(2)
				})
				held, _ = inUse()
			}
			b.ReportMetric(starts.at(.5)/1e6, "start-s")
			b.ReportMetric(held/1e6, "MB")
		})
	}
}

// BenchmarkDue is what an act costs in a session of its own while the deadlines of other sessions pass, next to
// the same act before; and how many breaches the broker enters in a second. The first obligations are due when
// all of them are promised.
func BenchmarkDue(b *testing.B) {
	const each = 100 // obligations of a session
	w := testkit.NewWorld(b, testkit.Options{Limits: unlimited})
	s := &shelf{&site{TB: b}, w}
	s.enter()
	var left atomic.Int64
	done := make(chan struct{}, 1)
	breached, err := w.Operates().Conn().Subscribe(api.Event("*", "timeout"), func(*nats.Msg) {
		if left.Add(-1) == 0 {
			done <- struct{}{}
		}
	})
	testkit.Must(b, err)
	testkit.Must(b, breached.SetPendingLimits(-1, -1))
	for b.Loop() {
		n := max(1, *deadlines/each)
		left.Store(int64(n * each))
		begin := time.Now().Add(time.Duration(n)*20*time.Millisecond + 5*time.Second)
		var nth atomic.Int64
		s.fill(n, func(id performatives.SessionID) {
			at := begin.Add(*within * time.Duration(nth.Add(1)-1) / time.Duration(n))
			s.agree(id, each, at, at.Add(*within/time.Duration(n)))
		})
		var own performatives.SessionID
		var before, during spans
		say := func(into *spans) {
			if (len(before)+len(during))%5_000 == 0 { // it has no room for many more
				own = s.session(2)
			}
			envelope := s.act(own, beta, remark())
			into.time(func() { s.submit(own, beta, envelope) })
		}
		for time.Now().Before(begin) {
			say(&before)
		}
		for working := true; working; {
			select {
			case <-done:
				working = false
			case <-w.Ctx.Done():
				b.Fatal(context.Cause(w.Ctx))
			default:
				say(&during)
			}
		}
		b.ReportMetric(float64(n*each)/time.Since(begin).Seconds(), "breaches/s")
		b.ReportMetric(before.at(.99), "before-µs-p99")
		b.ReportMetric(during.at(.99), "during-µs-p99")
		b.ReportMetric(during.at(.5)/before.at(.5), "ratio-p50")
		b.ReportMetric(during.at(.99)/before.at(.99), "ratio-p99")
	}
}

// agree opens a session in which beta owes alpha so many things, due from one time to another.
func (s *shelf) agree(id performatives.SessionID, n int, from, to time.Time) {
	s.open(id)
	s.submit(id, alpha, s.act(id, alpha, remark()))
	promised := make([]performatives.Obligation, n)
	for i := range promised {
		due := from.Add(to.Sub(from) * time.Duration(i) / time.Duration(n))
		promised[i] = performatives.Obligation{Party: beta, Action: "deliver", Deadline: &due}
	}
	s.submit(id, beta, s.act(id, beta, &performatives.CommitBody{CommitmentID: "k1", Terms: &performatives.CommitmentTerms{Obligations: promised}}))
	s.submit(id, alpha, s.act(id, alpha, &performatives.AcceptBody{ReferenceID: "k1"}))
}
