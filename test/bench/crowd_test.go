package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// BenchmarkCrowd is one act by the number of participants, until its last copy is stored: an
// ACCEPT of the invitation, which everybody else receives. Beside it stands what the store
// takes for as many copies of the same bytes, each if its subject is unchanged.
func BenchmarkCrowd(b *testing.B) {
	for _, participants := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(participants, " participants"), func(b *testing.B) {
			at := testkit.StartServer(b)
			open, nc := at.OpenBroker(func(o *server.BrokerOptions) {
				o.Alone = true
				o.Limits = limits.Limits{Rate: 1e9, Burst: -1, Sessions: -1, PrincipalBytes: 1 << 40, OrganisationBytes: 1 << 40}
			})
			defer open.Close(context.Background())
			crowd := make([]performatives.Agent, participants-1)
			for n := range crowd {
				crowd[n] = performatives.Agent(fmt.Sprintf("agent://many.org/a%d", n))
			}
			var id performatives.SessionID
			next := len(crowd)
			says := func(a performatives.Agent, body performatives.Body) int {
				envelope := must(performatives.Draft{ID: testkit.NewID(), Session: id, Timestamp: time.Now(), Sender: a, Body: body}.Envelope(nil))
				if m := must(nc.Request(api.Submit(a, id), envelope, time.Minute)); m.Header.Get(api.ErrorCodeHeader) != "" {
					b.Fatalf("%s", m.Data)
				}
				return len(envelope)
			}
			applied := func() {
				must(nc.Request(api.OperatorCall(api.SessionGet.Name), fmt.Appendf(nil, `{"sessionId":%q}`, id), time.Minute))
			}
			size := 0
			for b.Loop() {
				if next == len(crowd) {
					b.StopTimer()
					id, next = testkit.NewSession(), 0
					says(alpha, &performatives.ProposeBody{
						ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "x",
						Terms: must(performatives.Canonical(fmt.Appendf(nil, `{"participants":%s}`, jsonList(crowd)))),
					})
					applied()
					b.StartTimer()
				}
				size = says(crowd[next], &performatives.AcceptBody{ReferenceID: "inv"})
				applied()
				next++
			}
			act := b.Elapsed() / time.Duration(b.N)
			raw := rawCopies(b, at.Connect(), participants-1, size+500, max(b.N, 3))
			b.ReportMetric(float64(act.Microseconds())/float64(participants-1), "µs/copy")
			b.ReportMetric(float64(raw.Microseconds())/float64(participants-1), "rawµs/copy")
			b.ReportMetric(float64(act)/float64(raw), "×raw")
		})
	}
}

// rawCopies is how long the store takes for copies to so many inboxes, on average.
func rawCopies(b *testing.B, nc *nats.Conn, inboxes, size, rounds int) time.Duration {
	b.Helper()
	js := must(jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(2000)))
	ctx := context.Background()
	must(js.CreateStream(ctx, jetstream.StreamConfig{Name: "RAW", Subjects: []string{"raw.*"}, Storage: jetstream.FileStorage}))
	data, last := make([]byte, size), make([]uint64, inboxes)
	start := time.Now()
	for range rounds {
		acks := make([]jetstream.PubAckFuture, inboxes)
		for n := range acks {
			acks[n] = must(js.PublishAsync(fmt.Sprint("raw.", n), data, jetstream.WithExpectLastSequencePerSubject(last[n])))
		}
		for n, ack := range acks {
			select {
			case stored := <-ack.Ok():
				last[n] = stored.Sequence
			case err := <-ack.Err():
				b.Fatal(err)
			}
		}
	}
	return time.Since(start) / time.Duration(rounds)
}

func jsonList(agents []performatives.Agent) string {
	list := ""
	for _, a := range agents {
		list += fmt.Sprintf(",%q", a)
	}
	return "[" + list[1:] + "]"
}
