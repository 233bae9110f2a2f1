package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/cmd/parley/bench"
	"github.com/parley-asp/parley/performatives"
)

// As in parley bench: what is warmed up first, and when what an act leaves to be done has
// been counted.
const (
	warmUp  = 500 * time.Millisecond
	follows = 3 * time.Second
	timeout = 30 * time.Second
)

// measurePeer measures the peer at one level.
func measurePeer(ctx context.Context, sessions int, seconds float64, start func() (*servers, error)) (f bench.Figures, err error) {
	s, err := start()
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the streams
	transport := &http.Transport{MaxIdleConnsPerHost: sessions + 2*bench.DefaultPairs}
	defer transport.CloseIdleConnections()
	var pairs [bench.DefaultPairs][2]*agent
	for n := range pairs {
		for i, name := range []string{"agent://acme.com/buyer-%d", "agent://widgets.co/seller-%d"} {
			a := &agent{name: performatives.Agent(fmt.Sprintf(name, n)), url: s.url, inboxes: s.inboxes, client: &http.Client{Transport: transport}}
			pairs[n][i] = a
			defer a.leave()
			if a.signer, err = performatives.NewKey(); err != nil {
				return f, err
			}
			if err := a.join(ctx); err != nil {
				return f, err
			}
		}
	}
	workers := make([]*worker, sessions)
	for i := range workers {
		pair := pairs[i%len(pairs)]
		script := bench.Negotiation(pair[1].name, bench.DefaultActs, bench.DefaultBody)
		workers[i] = &worker{pair: pair, script: script, received: make(chan arrival, len(script))}
	}
	if _, _, err := turn(ctx, workers, warmUp); err != nil {
		return f, err
	}
	before, err := s.cpu()
	if err != nil {
		return f, err
	}
	trips, elapsed, err := turn(ctx, workers, time.Duration(seconds*float64(time.Second)))
	if err != nil {
		return f, err
	}
	select { // CPU that follows the last act counts
	case <-time.After(follows):
	case <-ctx.Done():
		return f, ctx.Err()
	}
	after, err := s.cpu()
	if err != nil {
		return f, err
	}
	var accepted, received []time.Duration
	for _, t := range trips {
		accepted, received = append(accepted, t.accepted), append(received, t.received)
	}
	return bench.Figures{
		PerSecond: float64(len(trips)) / elapsed.Seconds(), Accepted: spread(accepted), Received: spread(received),
		CPU: micros(after-before) / float64(len(trips)),
	}, nil
}

func spread(all []time.Duration) bench.Spread {
	slices.Sort(all)
	at := func(q float64) float64 { return micros(all[int(q*float64(len(all)-1))]) }
	return bench.Spread{P50: at(.5), P99: at(.99)}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// An agent submits acts by HTTP and reads those of its counterparty from one stream; or does both over NATS.
type agent struct {
	name       performatives.Agent
	signer     performatives.Signer
	url, token string
	client     *http.Client
	nc         *nats.Conn // nil for HTTP
	inboxes    bool       // it has a durable one
	workers    sync.Map   // chan arrival by session
}

// An arrival is an act that was received.
type arrival struct {
	sequence int
	at       time.Time
}

func (a *agent) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	return a.client.Do(r)
}

// post reads the answer, all of it, so that the connection is used again.
func (a *agent) post(ctx context.Context, path string, body []byte) ([]byte, error) {
	answer, err := a.send(ctx, http.MethodPost, path, body)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it is read
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, answer.Status, text)
	}
	return text, err
}

// call asks over NATS.
func (a *agent) call(ctx context.Context, subject string, data []byte) error {
	answer, err := a.nc.RequestWithContext(ctx, subject, data)
	if err == nil && answer.Header.Get(api.ErrorCodeHeader) != "" {
		err = fmt.Errorf("%s: %s", subject, answer.Data)
	}
	return err
}

// submit submits an envelope until it is accepted.
func (a *agent) submit(ctx context.Context, id string, envelope []byte) error {
	if a.nc != nil {
		return a.call(ctx, api.Submit(a.name, performatives.SessionID(id)), envelope)
	}
	_, err := a.post(ctx, "/acts", envelope)
	return err
}

func (a *agent) leave() {
	if a.nc != nil {
		a.nc.Close()
	}
}

// join registers the agent and starts to receive.
func (a *agent) join(ctx context.Context) (err error) {
	if strings.HasPrefix(a.url, "nats:") {
		if a.nc, err = nats.Connect(a.url, nats.CustomInboxPrefix(api.Inboxes+a.name.Token())); err != nil {
			return err
		}
		if _, err := a.nc.Subscribe(api.Inboxes+actsFor(a.name), func(m *nats.Msg) { a.received(m.Data) }); err != nil {
			return err
		}
		if err := a.call(ctx, api.Call(a.name, register), []byte(a.signer.Key())); err != nil || !a.inboxes {
			return err
		}
		return a.consume(ctx)
	}
	answer, err := a.post(ctx, "/agents", fmt.Appendf(nil, `{"agentId":%q,"key":%q}`, a.name, a.signer.Key()))
	if err != nil {
		return err
	}
	var registered struct{ Token string }
	if err := json.Unmarshal(answer, &registered); err != nil {
		return err
	}
	a.token = registered.Token
	stream, err := a.send(ctx, http.MethodGet, "/acts", nil) // subscribed once there is an answer
	if err == nil {
		go a.receive(stream.Body)
	}
	return err
}

// consume reads and acknowledges what comes to the durable inbox.
func (a *agent) consume(ctx context.Context) error {
	js, err := jetstream.New(a.nc)
	if err != nil {
		return err
	}
	inbox, err := js.Consumer(ctx, api.InboxStream, a.name.Token())
	if err != nil {
		return err
	}
	_, err = inbox.Consume(func(m jetstream.Msg) {
		m.Ack() //nolint:errcheck // a redelivery fails the measurement
		a.received(m.Data())
	})
	return err
}

// receive reads the stream until it ends; an act that does not arrive fails its worker.
func (a *agent) receive(stream io.ReadCloser) {
	defer stream.Close() //nolint:errcheck // it has ended
	for lines := bufio.NewReader(stream); ; {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		a.received(text)
	}
}

// received tells the worker of its session of an act.
func (a *agent) received(text []byte) {
	at := time.Now()
	var act struct {
		SequenceNumber int
		SessionID      string
	}
	if json.Unmarshal(text, &act) != nil {
		return
	}
	if received, ok := a.workers.Load(act.SessionID); ok {
		received.(chan arrival) <- arrival{act.SequenceNumber, at} //nolint:errcheck // nothing else is stored
	}
}

// A worker holds one session after the other, as parley bench's do.
type worker struct {
	pair     [2]*agent
	script   []performatives.Body
	id       string
	acts     int // submitted in this session
	received chan arrival
}

type roundTrip struct{ accepted, received time.Duration }

// submit submits the next act and waits until it is accepted and received.
func (k *worker) submit(ctx context.Context) (t roundTrip, err error) {
	if k.acts == len(k.script) || k.id == "" {
		for _, a := range k.pair {
			a.workers.Delete(k.id)
		}
		k.id, k.acts = uuid.Must(uuid.NewV7()).String(), 0
		for _, a := range k.pair {
			a.workers.Store(k.id, k.received)
		}
	}
	sender := k.pair[k.acts%2]
	envelope, err := performatives.Draft{
		ID: performatives.MessageID(uuid.Must(uuid.NewV7()).String()), Session: performatives.SessionID(k.id), Timestamp: time.Now(),
		Sender: sender.name, Body: k.script[k.acts],
	}.Envelope(sender.signer)
	if err != nil {
		return t, err
	}
	start := time.Now()
	if err := sender.submit(ctx, k.id, envelope); err != nil {
		return t, err
	}
	t.accepted = time.Since(start)
	select {
	case got := <-k.received:
		if got.sequence != k.acts {
			return t, fmt.Errorf("session %s: received act %d instead of %d", k.id, got.sequence, k.acts)
		}
		t.received = got.at.Sub(start)
	case <-ctx.Done():
		return t, fmt.Errorf("session %s: an accepted act was not delivered: %w", k.id, ctx.Err())
	}
	k.acts++
	return t, nil
}

// turn drives all workers until the time is up.
func turn(ctx context.Context, workers []*worker, d time.Duration) ([]roundTrip, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, d+timeout)
	defer cancel()
	found := make([][]roundTrip, len(workers))
	start := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for i, k := range workers {
		g.Go(func() error {
			for time.Since(start) < d {
				t, err := k.submit(ctx)
				if err != nil {
					return err
				}
				found[i] = append(found[i], t)
			}
			return nil
		})
	}
	err := g.Wait()
	return slices.Concat(found...), time.Since(start), err
}
