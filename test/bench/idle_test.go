package bench

import (
	"runtime"
	"testing"

	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// BenchmarkIdle is what a broker keeps of a session that nobody speaks in: the
// memory and the goroutines of this process, where the NATS server is in
// another one. An iteration is one more session.
func BenchmarkIdle(b *testing.B) {
	data := b.TempDir()
	url := testkit.StartServerProcess(b, must(server.Config(data, testkit.Shards))).URL()
	w := testkit.NewWorld(b, testkit.Options{Data: data, NATS: url, Limits: limits.Limits{Sessions: -1}})
	s := &site{TB: b, people: map[performatives.Agent]person{}}
	for _, a := range []performatives.Agent{alpha, beta} {
		p := w.Principal(a)
		s.people[a] = person{p.Signer, p.Conn()}
	}
	for range 5_000 { // more than are kept in memory
		s.session(2)
	}
	memory, goroutines := inUse()
	for b.Loop() {
		s.session(2)
	}
	more, then := inUse()
	b.ReportMetric((more-memory)/float64(b.N), "B/session")
	b.ReportMetric(float64(then-goroutines)/float64(b.N), "goroutines/session")
}

// inUse is the memory that is reachable.
func inUse() (bytes float64, goroutines int) {
	var m runtime.MemStats
	for range 3 { // what pools keep takes two
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}
