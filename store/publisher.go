package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/internal/pending"
)

// publisher is an async publisher: it writes to streams and hands out a Pending
// for each acknowledgement. All acknowledgements come to one subscription, since
// each act waits for two of them. What was sent over a connection that broke is
// never acknowledged, so nobody waits for it.
type publisher struct {
	nc   *nats.Conn
	acks *pending.Answers[*Pending]
}

// A Pending is a message on its way into a stream.
type Pending struct {
	shard shard
	done  chan outcome // gets exactly one
}

// An outcome is the sequence of a stored message, or why there is none.
type outcome struct {
	sequence uint64
	err      error
}

var errDisconnected = errors.New("the connection to the NATS server broke")

const (
	maxPending = 4096            // messages on their way: a server drops what it has no room for
	ackTimeout = 5 * time.Second // then the outcome is indeterminate
)

func newPublisher(nc *nats.Conn, work *background.Group) (*publisher, error) {
	p := &publisher{nc: nc, acks: pending.New(nc.NewInbox()+".", maxPending, ackTimeout, func(waits *Pending, why error) {
		waits.done <- outcome{err: why}
	})}
	acks, err := nc.Subscribe(p.acks.Prefix+"*", p.acknowledged)
	if err != nil {
		return nil, err
	}
	if err := acks.SetPendingLimits(-1, -1); err != nil {
		return nil, errors.Join(err, acks.Unsubscribe())
	}
	changes := nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	work.Go(func(ctx context.Context) {
		defer nc.RemoveStatusListener(changes)
		defer acks.Unsubscribe() //nolint:errcheck // of a connection that may be closed
		for {
			select {
			case <-ctx.Done():
				p.acks.End(ctx.Err())
				return
			case <-changes:
				p.acks.Fail(errDisconnected, time.Now())
			}
		}
	})
	return p, nil
}

// Send sends a message to a stream, which takes it if the last one on its
// subject still has the sequence last, 0 for none. The message's header becomes
// the store's.
func (s *Store) Send(stream string, m Message, last uint64) (*Pending, error) {
	if err := s.Broken(); err != nil {
		return nil, err // the server would not answer
	}
	at := s.one(stream, m.Subject)
	m.Subject, _ = s.sent(m.Subject)
	return s.publisher.send(at, m, last)
}

func (p *publisher) send(to shard, m Message, last uint64) (*Pending, error) {
	if m.Header == nil {
		m.Header = Header{}
	}
	m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(to.from(last), 10)}
	waits := &Pending{shard: to, done: make(chan outcome, 1)}
	reply, err := p.acks.Put(waits)
	if err != nil {
		return nil, err
	}
	if err := p.nc.PublishMsg(&nats.Msg{Subject: m.Subject, Reply: reply, Header: m.Header, Data: m.Data}); err != nil {
		p.acks.Take(reply)
		return nil, err
	}
	return waits, nil
}

// Stored waits for the acknowledgement: the sequence, or ErrConflict,
// ErrIndeterminate, or the server's refusal.
func (p *Pending) Stored() (sequence uint64, err error) {
	o := <-p.done
	return o.sequence, writeError(o.err)
}

func (p *publisher) acknowledged(m *nats.Msg) {
	if waits, found := p.acks.Take(m.Subject); found {
		o := readAck(waits.shard.name, m)
		o.sequence = waits.shard.position(o.sequence)
		waits.done <- o
	}
}

// readAck reads an acknowledgement of a stream: the usual one as it is written,
// and all else as JSON.
func readAck(stream string, m *nats.Msg) (o outcome) {
	if sequence, usual := readUsualAck(stream, m.Data); usual {
		return outcome{sequence: sequence}
	}
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return outcome{err: jetstream.ErrNoStreamResponse}
	}
	var ack struct {
		Error    *jetstream.APIError `json:"error"`
		Stream   string              `json:"stream"`
		Sequence uint64              `json:"seq"`
	}
	switch err := json.Unmarshal(m.Data, &ack); {
	case err != nil:
		return outcome{err: fmt.Errorf("%w: %w", jetstream.ErrInvalidJSAck, err)}
	case ack.Error != nil:
		return outcome{err: ack.Error}
	case ack.Stream != stream || ack.Sequence == 0:
		return outcome{err: fmt.Errorf("%w: %.100q", jetstream.ErrInvalidJSAck, m.Data)}
	}
	return outcome{sequence: ack.Sequence}
}

// readUsualAck reads what a server without a domain writes:
// {"stream":"NAME","seq":1}
func readUsualAck(stream string, ack []byte) (sequence uint64, usual bool) {
	name, ok := bytes.CutPrefix(ack, []byte(`{"stream":"`))
	if !ok || len(name) < len(stream) || string(name[:len(stream)]) != stream {
		return 0, false
	}
	rest, ok := bytes.CutPrefix(name[len(stream):], []byte(`","seq":`))
	if !ok || len(rest) < 2 || rest[len(rest)-1] != '}' {
		return 0, false
	}
	sequence, err := strconv.ParseUint(string(rest[:len(rest)-1]), 10, 64)
	return sequence, err == nil && sequence > 0
}
