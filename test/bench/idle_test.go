package bench

import (
	"context"
	"runtime"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/natsserver"
)

// BenchmarkIdle is what a broker keeps of a session that nobody speaks in: the
// memory and the goroutines of this process, where the NATS server is in
// another one. An iteration is one more session.
func BenchmarkIdle(b *testing.B) {
	data := b.TempDir()
	url := natsserver.Start(b, must(natsserver.Build(b.TempDir())), must(server.Config(data)))
	n := must(server.Start(context.Background(), server.Options{Data: data, NATS: "nats://" + url, Limits: broker.Limits{Sessions: -1}}))
	b.Cleanup(func() { n.Close(context.Background()) })
	s := &site{TB: b, people: map[performatives.Agent]person{}}
	for _, a := range []performatives.Agent{alpha, beta} {
		pair := must(nkeys.CreateUser())
		key := must(pair.PublicKey())
		must(n.AddAgent(context.Background(), api.Card{Agent: a, Key: performatives.Key(key)}))
		nc := must(nats.Connect(n.URL, nats.Nkey(key, pair.Sign), nats.CustomInboxPrefix("_INBOX."+a.Token())))
		b.Cleanup(nc.Close)
		s.people[a] = person{must(performatives.NewSigner(pair)), nc}
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
