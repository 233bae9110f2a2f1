package bench

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/test/testkit"
)

// BenchmarkLogged is one act while the public log rests, and while it takes in a leaf for each
// act, which is more than any session makes. What as many leaves cost by themselves is measured
// in turns with the two, and subtracted.
func BenchmarkLogged(b *testing.B) {
	const batch = 256
	published, size := make(checkpoints, 1), 0
	s := newSite(b, time.Minute, false, func(o *server.BrokerOptions) { o.Secret, o.Published = []byte("of this benchmark"), published })
	acts := func(taken *spans, then func()) (say func()) {
		id, envelopes := s.session(3), make([][]byte, batch)
		for n := range envelopes {
			envelopes[n] = s.act(id, beta, remark())
		}
		return func() {
			for _, envelope := range envelopes {
				taken.time(func() { s.submit(id, beta, envelope) })
				then()
			}
		}
	}
	leaf := func() {
		id := testkit.NewSession()
		data := must(inclusion.Leaf{Type: inclusion.Session, Hash: fmt.Sprintf("sha256:%07d", size), At: "2026-03-07T14:30:00.000000000Z"}.Bytes())
		if err := s.broker.Parts.Ledger.Append(b.Context(), inclusion.Session, string(id), id, data); err != nil {
			panic(err)
		}
		size++
	}
	integrated := func() {
		for before := size - batch; before < size; {
			before = <-published
		}
	}
	cpu := func(total *time.Duration, do func()) {
		before := processorTime(b)
		do()
		*total += processorTime(b) - before
	}
	var alone, beside, warm spans
	var aloneCPU, besideCPU, leavesCPU time.Duration
	acts(&warm, func() {})()
	for b.Loop() {
		cpu(&aloneCPU, acts(&alone, func() {}))
		due := make(chan struct{}, batch)
		say := acts(&beside, func() { due <- struct{}{} })
		cpu(&besideCPU, func() {
			var logging sync.WaitGroup
			logging.Go(func() {
				for range batch {
					<-due
					leaf()
				}
			})
			say()
			logging.Wait()
			integrated()
		})
		cpu(&leavesCPU, func() {
			for range batch {
				leaf()
			}
			integrated()
		})
	}
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(len(alone)) }
	b.ReportMetric(alone.at(.5), "alone-µs-p50")
	b.ReportMetric(beside.at(.5), "beside-µs-p50")
	b.ReportMetric(each(aloneCPU), "alone-cpu-µs/act")
	b.ReportMetric(each(besideCPU-leavesCPU), "beside-cpu-µs/act")
	b.ReportMetric(each(leavesCPU), "cpu-µs/leaf")
}

// checkpoints returns how many leaves the newest checkpoint of a log has.
type checkpoints chan int

func (checkpoints) Load() (string, error) { return "", nil }

// Save is called by the log alone, so there is room for the newest.
func (c checkpoints) Save(checkpoint string) error {
	size, err := strconv.Atoi(strings.Split(checkpoint, "\n")[1])
	select {
	case <-c:
	default:
	}
	c <- size
	return err
}
