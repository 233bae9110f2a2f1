package server_test

import (
	"context"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// A footprint is what a broker may leave behind: goroutines by who started them,
// subscriptions, ephemeral consumers, and membership records.
type footprint struct {
	goroutines    map[string]int
	subscriptions int
	ephemeral     []string
	records       []string
}

var started = regexp.MustCompile(`created by (\S+) in goroutine`)

// measure takes the footprint of all that uses a connection.
func measure(t *testing.T, nc *nats.Conn) (f footprint) {
	t.Helper()
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	f.goroutines = map[string]int{}
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		// The library's own goroutines end with its subscriptions, which are counted below.
		if strings.Contains(stack, "github.com/parley-asp/parley/") && !strings.Contains(stack, "measure(") {
			if by := started.FindStringSubmatch(stack); by != nil {
				f.goroutines[by[1]]++
			}
		}
	}
	f.subscriptions = nc.NumSubscriptions()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(testkit.Patience))
	testkit.Must(t, err)
	streams := js.ListStreams(t.Context())
	for s := range streams.Info() {
		stream, err := js.Stream(t.Context(), s.Config.Name)
		testkit.Must(t, err)
		consumers := stream.ListConsumers(t.Context())
		for c := range consumers.Info() {
			if c.Config.Durable == "" {
				f.ephemeral = append(f.ephemeral, s.Config.Name+" "+c.Name)
			}
		}
		testkit.Must(t, consumers.Err())
		if s.Config.Name == api.StreamOf(api.BrokersBucket) {
			kv, err := js.KeyValue(t.Context(), api.BrokersBucket)
			testkit.Must(t, err)
			keys, err := kv.ListKeys(t.Context())
			testkit.Must(t, err)
			f.records = slices.AppendSeq(f.records, func(yield func(string) bool) {
				for key := range keys.Keys() {
					if !yield(key) {
						return
					}
				}
			})
		}
	}
	testkit.Must(t, streams.Err())
	return f
}

// returnsTo waits until something has left what was there before it. The library says that a
// consumer is closed a moment before it unsubscribes.
func returnsTo(t *testing.T, nc *nats.Conn, before footprint, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var after footprint
	if testkit.Until(ctx, func() bool { after = measure(t, nc); return after.equal(before) }) != nil {
		t.Fatalf("%s leaves\n%+v, before it there was\n%+v", what, after, before)
	}
}

func (f footprint) equal(g footprint) bool {
	return maps.Equal(f.goroutines, g.goroutines) && f.subscriptions == g.subscriptions &&
		slices.Equal(f.ephemeral, g.ephemeral) && slices.Equal(f.records, g.records)
}

// TestNothingIsLeft: after Close, and after a start that fails at whichever step,
// nothing of a broker is left. Each start fails for a reason that people can cause: a
// stream or a consumer of somebody else is in the way.
func TestNothingIsLeft(t *testing.T) { //nolint:paralleltest // it counts the goroutines of the process
	s := testkit.StartServer(t)
	nc := s.Connect()
	open := func() (*server.Broker, error) {
		return server.OpenBroker(t.Context(), server.BrokerOptions{Options: broker.Options{Signer: s.Signer}, Conn: nc, Archive: archive.Policy{After: time.Hour}})
	}
	end := func(b *server.Broker) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		testkit.Must(t, b.Close(ctx))
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(testkit.Patience))
	testkit.Must(t, err)
	measure(t, nc) // what the library keeps from now on
	before := measure(t, nc)
	for _, obstacle := range []string{ // in the order in which the broker creates them
		api.AllSessions, api.AllInboxes, api.AllEscalations, api.AllCaseLogs, "asp.timer.>", api.AllIndex, api.AllArchive,
		"$KV." + api.AgentsBucket + ".>", "$KV." + api.EnrolBucket + ".>", "$KV." + api.SchemasBucket + ".>", "$KV." + api.KeysBucket + ".>", "$KV." + api.IdempotencyBucket + ".>", "$KV." + api.ClaimsBucket + ".>", "$KV." + api.PrivateBucket + ".>", "$KV." + api.BrokersBucket + ".>", "$KV." + api.WakeupsBucket + ".>", "$KV." + api.SeenBucket + ".>", "$KV." + api.A2ABucket + ".>",
	} {
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OBSTACLE", Subjects: []string{obstacle}, Storage: jetstream.MemoryStorage})
		testkit.Must(t, err)
		if b, err := open(); err == nil {
			end(b)
			t.Errorf("the broker opens although another stream has %s", obstacle)
		}
		testkit.Must(t, js.DeleteStream(t.Context(), "OBSTACLE"))
		returnsTo(t, nc, before, "a start that fails at "+obstacle)
	}
	b, err := open()
	testkit.Must(t, err)
	end(b)
	returnsTo(t, nc, before, "the first Close")
	for stream, consumer := range map[string]string{api.TimersStream: "brokers", api.IndexStream: "archiver"} {
		testkit.Must(t, js.DeleteConsumer(t.Context(), stream, consumer))
		_, err := js.CreateConsumer(t.Context(), stream, jetstream.ConsumerConfig{
			Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy, ReplayPolicy: jetstream.ReplayOriginalPolicy, // which nobody can change
			FilterSubject: map[string]string{api.TimersStream: "asp.timer.due.*", api.IndexStream: api.AllOver}[stream],
		})
		testkit.Must(t, err)
		if b, err := open(); err == nil {
			end(b)
			t.Errorf("the broker opens although somebody else's %s is in %s", consumer, stream)
		}
		testkit.Must(t, js.DeleteConsumer(t.Context(), stream, consumer))
		returnsTo(t, nc, before, "a start that fails at "+consumer)
	}
	for range 3 {
		b, err := open()
		testkit.Must(t, err)
		end(b)
		returnsTo(t, nc, before, "Close")
	}
}
