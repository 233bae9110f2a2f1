package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A road is a way for acts to travel: through the broker, or raw.
type road struct {
	name    string
	process int                                                      // the first of the world's that is its
	pids    []int                                                    // whose cost counts
	subject func(from, to *party, id performatives.SessionID) string // where an act goes
	heard   func(*nats.Msg) error                                    // what the answer says
	settle  func(context.Context, *person) (*party, error)           // gives a person a place there
	pairs   [][2]*party
	conns   []*nats.Conn
}

// A person is an agent with a key, the same on both roads.
type person struct {
	Agent  performatives.Agent
	signer performatives.Signer
}

func (p *person) login() nats.Option { return nats.Nkey(string(p.signer.Key()), p.signer.Sign) }

// A party is a person on one road: with a connection and a durable consumer.
type party struct {
	*person
	nc *nats.Conn

	mu    sync.RWMutex
	lanes map[string]*lane // by session
}

func (r *road) connect(p *person, url string, options ...nats.Option) (*party, error) {
	// Of several brokers, the one that answers the login may not have heard of the person yet.
	nc, err := nats.Connect(url, append(options, nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(),
		nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0))...)
	if err != nil {
		return nil, err
	}
	r.conns = append(r.conns, nc)
	if err := nc.FlushTimeout(patience); err != nil {
		return nil, err
	}
	return &party{person: p, nc: nc, lanes: map[string]*lane{}}, nil
}

// listen reads the party's durable consumer and acknowledges what comes.
func (p *party) listen(ctx context.Context, stream string) error {
	js, err := jetstream.New(p.nc)
	if err != nil {
		return err
	}
	consumer, err := js.Consumer(ctx, stream, p.Agent.Token())
	if err != nil {
		return err
	}
	_, err = consumer.Consume(func(m jetstream.Msg) {
		now := time.Now()
		subject := m.Subject()
		p.mu.RLock()
		l := p.lanes[subject[strings.LastIndexByte(subject, '.')+1:]]
		p.mu.RUnlock()
		m.Ack() //nolint:errcheck // what is not acknowledged comes again, and fails the measurement
		if l != nil {
			select {
			case l.received <- now:
			default: // it came twice; the first counted
			}
		}
	})
	return err
}

// enter lets the party receive for a lane.
func (p *party) enter(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lanes[string(l.id)] = l
}

// leave ends that.
func (p *party) leave(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.lanes, string(l.id))
}

func (r *road) close() {
	for _, nc := range r.conns {
		nc.Close()
	}
}

// lanes are so many new sessions, shared among the pairs; none is open yet.
func (r *road) lanes(sessions int) []*lane {
	all := make([]*lane, sessions)
	for i := range all {
		all[i] = newLane(r, r.pairs[i%len(r.pairs)])
	}
	return all
}

// acceptedByBroker and acceptedByStore read as little of the answer as tells
// whether the act was heard.
func acceptedByBroker(m *nats.Msg) error {
	if m.Header.Get(api.ErrorCodeHeader) != "" || !bytes.Contains(m.Data, []byte(`"accepted":true`)) {
		return fmt.Errorf("refused: %s", m.Data)
	}
	return nil
}

func acceptedByStore(m *nats.Msg) error {
	if len(m.Data) == 0 || bytes.Contains(m.Data, []byte(`"error"`)) {
		return errors.Join(errors.New("not stored"), fmt.Errorf("%s", m.Data))
	}
	return nil
}
