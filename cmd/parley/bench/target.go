package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/performatives"
)

// A target is what the load is sent to: the broker, or a raw stream.
type target struct {
	name   string
	pids   []int // processes to measure
	encode func(from *party, id performatives.SessionID, body performatives.Body) ([]byte, error)
	submit func(ctx context.Context, from, to *party, id performatives.SessionID, message []byte) error // until it is accepted
	join   func(context.Context, *person) (*party, error)                                               // registers and connects a person
	pairs  [][2]*party
	conns  []*nats.Conn
	http   string // URL of HTTP
	close  func() // of what else is open
}

// signed makes the envelope of an act.
func signed(from *party, id performatives.SessionID, body performatives.Body) ([]byte, error) {
	return performatives.Draft{
		ID: performatives.MessageID(uuid.Must(uuid.NewV7()).String()), Session: id, Timestamp: time.Now(), Sender: from.Agent, Body: body,
	}.Envelope(from.signer)
}

// request submits by a NATS request.
func request(subject func(from, to *party, id performatives.SessionID) string, accepted func(*nats.Msg) error) func(context.Context, *party, *party, performatives.SessionID, []byte) error {
	return func(ctx context.Context, from, to *party, id performatives.SessionID, message []byte) error {
		answer, err := from.nc.RequestWithContext(ctx, subject(from, to, id), message)
		if err != nil {
			return err
		}
		return accepted(answer)
	}
}

// A person is an agent and its key, the same on both targets.
type person struct {
	Agent  performatives.Agent
	signer performatives.Signer
	logs   performatives.Signer // in
}

func (p *person) login() nats.Option { return natslogin.Key(string(p.logs.Key()), p.logs.Sign) }

// A party is a person at one target, with a connection and a durable consumer.
type party struct {
	*person
	nc    *nats.Conn
	token string // for HTTP

	mu      sync.RWMutex
	workers map[string]*worker // by session
}

func (r *target) connect(p *person, url string, options ...nats.Option) (*party, error) {
	// The broker that serves the login may not know the new key yet: retry.
	nc, err := nats.Connect(url, append(options, nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(),
		nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0))...)
	if err != nil {
		return nil, err
	}
	r.conns = append(r.conns, nc)
	if err := nc.FlushTimeout(deadline); err != nil {
		return nil, err
	}
	return &party{person: p, nc: nc, workers: map[string]*worker{}}, nil
}

// inbox is the stream of the party's inbox: a store has one for each shard.
func (p *party) inbox(ctx context.Context) (string, error) {
	answer, err := p.nc.RequestWithContext(ctx, api.Call(p.Agent, api.BrokerInfo.Name), nil)
	if err != nil {
		return "", err
	}
	var info api.Broker
	err = json.Unmarshal(answer.Data, &info)
	return cmp.Or(info.Inbox, api.InboxStream), err
}

// listen reads the party's durable consumer and acknowledges the messages.
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
		m.Ack() //nolint:errcheck // a redelivery fails the measurement
		p.hear(subject[strings.LastIndexByte(subject, '.')+1:], now)
	})
	return err
}

// hear tells the worker of a session that its act was delivered.
func (p *party) hear(id string, at time.Time) {
	p.mu.RLock()
	k := p.workers[id]
	p.mu.RUnlock()
	if k != nil {
		select {
		case k.received <- at:
		default: // a redelivery; the first delivery counts
		}
	}
}

// enter starts receiving for a worker.
func (p *party) enter(k *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers[string(k.id)] = k
}

// leave stops receiving for a worker.
func (p *party) leave(k *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.workers, string(k.id))
}

func (r *target) leave() {
	if r.close != nil {
		r.close()
	}
	for _, nc := range r.conns {
		nc.Close()
	}
}

// workers makes a number of workers, spread over the pairs, that hold sessions of so many
// acts with bodies of so many bytes.
func (r *target) workers(sessions, acts, body int) []*worker {
	all := make([]*worker, sessions)
	var scripts [][]performatives.Body
	for i := range all {
		pair := r.pairs[i%len(r.pairs)]
		if i < len(r.pairs) {
			scripts = append(scripts, Negotiation(pair[1].Agent, acts, body))
		}
		all[i] = newWorker(r, pair, scripts[i%len(r.pairs)])
	}
	return all
}

// acceptedByBroker and acceptedByStore read only as much of the reply as tells
// whether the act was accepted.
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
