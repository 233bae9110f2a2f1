package availability_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/availability"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/natskit"
)

const agent performatives.Agent = "agent://acme.com/a_b/C"

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A world is a NATS server with brokers that watch agents, which here begin to sweep when told.
type world struct {
	*testing.T
	*natskit.Server
	*natskit.Clock
	removed *atomic.Bool // the agent is
}

func (w world) open() *availability.Agents {
	w.Helper()
	s, err := store.Open(w.Context(), store.Options{Conn: w.Connect(), Log: zap.NewNop()})
	natskit.Must(w, err)
	w.Cleanup(s.Close)
	natskit.Must(w, s.EnsureConsumer(w.Context(), store.Consumer{Stream: api.InboxStream, Name: agent.Token(), Subject: api.InboxOf(agent)}))
	a, err := availability.Open(w.Context(), availability.Options{
		Store: s, Known: func(a performatives.Agent) bool { return a == agent && !w.removed.Load() }, Now: w.Now, Log: zap.NewNop(),
	})
	natskit.Must(w, err)
	w.Cleanup(a.Close)
	return a
}

// is waits until an agent is online, or offline since it was last seen.
func (w world) is(a *availability.Agents, online bool, lastSeen time.Time) {
	w.Helper()
	w.until(func() bool {
		is, last := a.Of(agent)
		return is == online && (online || last.Equal(lastSeen))
	})
}

func (w world) until(holds func() bool) {
	w.Helper()
	natskit.Eventually(w, "it is so", holds)
}

func newWorld(t *testing.T) world {
	t.Helper()
	return world{t, natskit.StartServer(t), natskit.StoppedClock(start), new(atomic.Bool)}
}

// An agent is online for a minute after each sign of life, at every broker, and was last seen
// then, also for a broker that starts later. Signs of life cost no write each.
func TestOnline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, peer := w.open(), w.open()
	w.is(a, false, time.Time{})
	for range 1000 {
		a.Seen(agent)
	}
	a.Seen("agent://nobody.com/x")
	w.is(a, true, start)
	w.is(peer, false, time.Time{})
	a.Sweep(t.Context())
	w.is(peer, true, start)
	w.Advance(availability.OnlineFor - time.Second)
	a.Sweep(t.Context())
	w.is(a, true, start)
	w.Advance(time.Second)
	w.is(a, false, start)
	w.is(peer, false, start)
	a.Sweep(t.Context())
	peer.Sweep(t.Context())
	if n, err := a.Records(t.Context()); n != 1 || err != nil {
		t.Errorf("a thousand signs of life made %d records: %v", n, err)
	}
	peer.Close()
	w.is(w.open(), false, start)
	if online, last := a.Of("agent://nobody.com/x"); online || !last.IsZero() {
		t.Errorf("who is not registered is online %t, last seen %s", online, last)
	}
}

// If the broker that saw an agent last is gone, another one records it.
func TestBrokerGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, peer := w.open(), w.open()
	a.Seen(agent)
	a.Sweep(t.Context())
	w.is(peer, true, start)
	w.Advance(10 * time.Minute)
	a.Seen(agent)
	a.Sweep(t.Context())
	w.is(peer, true, start)
	a.Close()
	w.Advance(2 * availability.OnlineFor)
	peer.Sweep(t.Context())
	w.is(w.open(), false, start.Add(10*time.Minute))
}

// Of an agent that was removed no record stays.
func TestRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.open()
	a.Seen(agent)
	w.removed.Store(true)
	w.Advance(availability.OnlineFor)
	a.Sweep(t.Context())
	if n, err := a.Records(t.Context()); n != 1 || err != nil {
		t.Errorf("besides the removal, %d records were written: %v", n-1, err)
	}
	if online, last := a.Of(agent); online || !last.IsZero() {
		t.Errorf("it is online %t, last seen %s", online, last)
	}
}

// An agent that pulls from its inbox is online, as long as a pull waits.
func TestConsumers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.open()
	client, err := nats.Connect(w.URL) // in the account of principals
	natskit.Must(t, err)
	defer client.Close()
	reply := client.NewInbox()
	waiting, err := client.SubscribeSync(reply)
	natskit.Must(t, err)
	natskit.Must(t, client.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+api.InboxStream+"."+agent.Token(), reply, []byte(`{"batch":1,"expires":3600000000000}`)))
	a.Seen(agent)
	js, err := jetstream.New(w.Connect())
	natskit.Must(t, err)
	pulls := func(n int) {
		w.until(func() bool {
			c, err := js.Consumer(t.Context(), api.InboxStream, agent.Token())
			return err == nil && c.CachedInfo().NumWaiting == n
		})
	}
	pulls(1) // which the broker may know before the consumer does
	w.Advance(2 * availability.OnlineFor)
	w.is(a, false, start)
	a.Sweep(t.Context())
	w.is(a, true, start.Add(2*availability.OnlineFor))
	natskit.Must(t, waiting.Unsubscribe())
	natskit.Must(t, client.Flush())
	pulls(0)
	w.Advance(availability.OnlineFor)
	a.Sweep(t.Context())
	w.is(a, false, start.Add(2*availability.OnlineFor))
}
