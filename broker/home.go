package broker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// Where several brokers share the work, each session has a home among those
// that are there: the broker whose memory is warm. A server that was told to
// (api.HomeMapping) brings most acts home; what comes to another broker is handed
// on by it. Nothing is wrong when two brokers see homes differently, or when a
// home is gone: it costs a reading of what the other has entered, and appends
// are conditional anyway.

// homes are where sessions are at home, by their partition.
type homes struct {
	b  *Broker
	at atomic.Pointer[homeTable]

	acts chan *nats.Msg // that the server brought; all subscriptions end in it, so that their order is kept

	mu      sync.Mutex
	brokers []string // that are there
	serving bool
	any     *nats.Subscription           // to what is at home anywhere
	mine    map[int][]*nats.Subscription // to what is at home here
}

type homeTable [api.Partitions]string

const (
	// homeWeight is how many times a broker subscribes to what is at home with it,
	// besides the once that each subscribes to everything, all in one queue group. The
	// server picks one subscription at random: of three brokers the home has 13 of
	// 15. When it goes, its subscriptions go with its connection, and the next act
	// comes to another one. More of them would cost the server more than they save:
	// it collects them all for a subject that it has not seen lately.
	homeWeight = 12

	maxBrought = 1 << 15 // acts that wait to be let in; the server's sending is not bounded otherwise
)

// homesAmong finds the same home for whoever asks, and for most partitions still
// the same when a broker comes or goes (rendezvous hashing).
func homesAmong(brokers []string) *homeTable {
	var at homeTable
	for p := range at {
		var most [sha256.Size]byte
		for _, broker := range brokers {
			if h := sha256.Sum256([]byte(broker + "/" + strconv.Itoa(p))); bytes.Compare(h[:], most[:]) > 0 {
				at[p], most = broker, h
			}
		}
	}
	return &at
}

// elsewhere is the home of a session, if that is another broker.
func (b *Broker) elsewhere(id performatives.SessionID) (broker string, is bool) {
	if b.Alone {
		return "", false
	}
	at := b.homes.at.Load()[api.PartitionOf(id)]
	return at, at != b.id
}

// among notes who is there now.
func (h *homes) among(brokers []string) {
	slices.Sort(brokers)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(brokers, h.brokers) {
		h.brokers = brokers
		h.at.Store(homesAmong(brokers))
		h.move()
	}
}

// openHomes begins to hear what the server brings.
func (b *Broker) openHomes(context.Context) (err error) {
	if b.Alone {
		return nil
	}
	h := b.homes
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.any, err = h.subscribe(api.AllAtHome); err != nil {
		return err
	}
	b.work.Go(h.hear)
	h.serving = true
	h.move()
	return nil
}

func (h *homes) subscribe(subject string) (*nats.Subscription, error) {
	return h.b.Conn.ChanQueueSubscribe(subject, api.ServiceName, h.acts)
}

// move subscribes to what is at home here now, and no more to what was. Whoever is
// the only broker has everything anyway. What was sent before the server hears of
// it is still heard.
func (h *homes) move() {
	if !h.serving {
		return
	}
	var failure error
	for p, at := range h.at.Load() {
		here := at == h.b.id && len(h.brokers) > 1
		switch {
		case here && h.mine[p] == nil:
			for range homeWeight {
				s, err := h.subscribe(api.AtHome(p))
				if err != nil {
					failure = err
					break
				}
				h.mine[p] = append(h.mine[p], s)
			}
		case !here && h.mine[p] != nil:
			failure = errors.Join(failure, drain(h.mine[p]...))
			delete(h.mine, p)
		}
	}
	if failure != nil {
		h.b.Log.Debug("homes", zap.Error(failure)) // of a connection that is closed: nothing comes there any more
	}
}

func drain(all ...*nats.Subscription) (failure error) {
	for _, s := range all {
		failure = errors.Join(failure, s.Drain())
	}
	return failure
}

// hear lets in what the server brought.
func (h *homes) hear(ctx context.Context) {
	for {
		select {
		case m := <-h.acts:
			h.letIn(m)
		case <-ctx.Done():
			for { // whoever asked last is told that nobody is at home
				select {
				case m := <-h.acts:
					h.letIn(m)
				default:
					return
				}
			}
		}
	}
}

func (h *homes) letIn(m *nats.Msg) {
	if subject, is := api.Brought(m.Subject); is {
		h.b.letIn(subject, brought{m})
	}
}

// leave hears no more, but for what is on its way.
func (h *homes) leave() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.serving {
		return nil
	}
	h.serving = false
	failure := drain(h.any)
	for _, subscriptions := range h.mine {
		failure = errors.Join(failure, drain(subscriptions...))
	}
	if h.b.Conn.IsConnected() {
		failure = errors.Join(failure, h.b.Conn.FlushTimeout(leaveWithin))
	}
	return failure
}

// leaveWithin is how long a broker that leaves waits for the server to know.
const leaveWithin = time.Second

// brought is an act that the server brought home.
type brought struct{ m *nats.Msg }

func (a brought) Data() []byte  { return a.m.Data }
func (a brought) Reply() string { return a.m.Reply }
