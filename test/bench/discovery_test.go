package bench

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// The agents of BenchmarkDiscover: of all cards some have the capability, and some of those
// are online and answer.
const (
	allCards = 100_000
	capable  = 500
	online   = 50
)

// BenchmarkDiscover is one call for proposals over NATS: how long it takes beyond its wait,
// and the processor time of this process, which is the NATS server, the broker, and the
// agents that answer.
func BenchmarkDiscover(b *testing.B) {
	at := testkit.StartServer(b)
	open, nc := at.OpenBroker(func(o *server.BrokerOptions) { o.Alone, o.Limits = true, limits.Limits{Rate: 1e9, Burst: -1} })
	defer open.Close(context.Background())
	publishCards(b, at.Connect())
	ask := func(request string) api.Proposals {
		m := must(nc.Request(api.Call(alpha, api.DiscoveryCall.Name), []byte(request), time.Minute))
		var found api.Proposals
		if err := json.Unmarshal(m.Data, &found); err != nil || m.Header.Get(api.ErrorCodeHeader) != "" {
			b.Fatalf("%s %v", m.Data, err)
		}
		return found
	}
	const task = `"task_summary":"extract tables from PDF invoices","max_cost_amount":"0.001"`
	testkit.Eventually(b, "all cards are known", func() bool { return ask(`{`+task+`,"capability":"extract.pdf","waitMs":0}`).Asked >= capable })
	for n := range online {
		a := agentOf(n)
		own := must(nats.Connect(nc.ConnectedUrl()))
		b.Cleanup(own.Close)
		must(own.Subscribe("asp.discovery.extract.pdf", func(m *nats.Msg) {
			var call api.CallNotice
			if json.Unmarshal(m.Data, &call) == nil {
				_ = own.PublishRequest(api.Call(a, api.DiscoveryAnswer.Name), "_INBOX.none", fmt.Appendf(nil, `{"callId":%q,"accepted":true,"score":0.9,"confidence":0.9}`, call.ID))
			}
		}))
		if err := own.Flush(); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, request string
		wait          time.Duration
		asked         int
	}{
		{"cards", `,"capability":"extract.pdf","waitMs":0`, 0, capable},
		{"cards and 50 online", `,"capability":"extract.pdf","waitMs":200`, 200 * time.Millisecond, capable},
		{"prefix", `,"capability":"extract.*","waitMs":0`, 0, capable},
		{"any capability", `,"waitMs":0`, 0, api.MaxAsked},
	} {
		b.Run(c.name, func(b *testing.B) {
			answered, before := 0, processorTime(b)
			for b.Loop() {
				found := ask(`{` + task + c.request + `}`)
				if found.Asked != c.asked || len(found.Candidates) != 20 {
					b.Fatalf("%d asked, %d candidates", found.Asked, len(found.Candidates))
				}
				answered += found.Answered
			}
			b.ReportMetric(float64((b.Elapsed()-time.Duration(b.N)*c.wait).Microseconds())/float64(b.N)/1000, "ms-beyond-wait")
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N)/1000, "cpu-ms")
			b.ReportMetric(float64(answered)/float64(b.N), "answers")
		})
	}
}

func agentOf(n int) performatives.Agent {
	return performatives.Agent(fmt.Sprintf("agent://a%d.example/agent", n))
}

// publishCards writes cards into the registry's bucket, as another broker would.
func publishCards(b *testing.B, nc *nats.Conn) {
	b.Helper()
	var missed sync.Map
	js := must(jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4000), jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) {
		missed.Store(m.Subject, err)
	})))
	for n := range allCards {
		trust := float64(n % 100)
		card := api.Card{
			Agent: agentOf(n), Kind: performatives.KindSystem, Capabilities: []string{fmt.Sprint("other.", n%1000)},
			Registry: api.Registry{TrustScore: &trust},
			Skills: []discovery.Skill{{
				ID: "skill", Name: fmt.Sprint("Skill ", n%1000), Tags: []string{"sort", "print", fmt.Sprint("tag", n%1000)},
			}},
		}
		if n < capable {
			card.Capabilities = []string{"extract.pdf"}
			for i := range 10 {
				card.Skills = append(card.Skills, discovery.Skill{
					ID: fmt.Sprint("pdf", i), Name: "PDF Processing", Tags: []string{"pdf", "tables", fmt.Sprint("tag", n%7)}, AllowedTools: []string{"pdf_parser"},
				})
			}
		}
		data := must(json.Marshal(card))
		must(js.PublishAsync(fmt.Sprintf("$KV.%s.a%d_example/agent", api.AgentsBucket, n), data, jetstream.WithStallWait(time.Minute)))
	}
	<-js.PublishAsyncComplete()
	missed.Range(func(subject, err any) bool {
		b.Fatalf("%v: %v", subject, err)
		return false
	})
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
