package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A link is the connection to the server, with what was sent to streams over it
// and is not acknowledged yet. All acknowledgements come to one subscription and
// are told apart by their subject, since each act waits for two of them. What
// was sent over a connection that broke is never answered: nobody has to wait
// for it.
type link struct {
	nc      *nats.Conn
	replies string // what the subjects of acknowledgements begin with

	mu       sync.Mutex
	room     sync.Cond
	sent     map[uint64]*sent
	last     uint64 // number that was given to one
	watching bool   // for those that stay silent
	closed   bool
}

// sent is a message on its way into a stream.
type sent struct {
	stream string
	number uint64
	at     time.Time
	done   chan outcome // one, in any case
}

// An outcome is where a message stands in its stream, or why nobody knows.
type outcome struct {
	position uint64
	err      error
}

var (
	errLinkBroke = errors.New("the connection to the NATS server broke")
	errSilence   = errors.New("the stream did not answer in time")
)

// mostSent bounds what is on its way: a server drops what it has no room for.
const mostSent = 4096

func (b *Broker) openLink(context.Context) error {
	l := &link{nc: b.Conn, replies: b.Conn.NewInbox() + ".", sent: map[uint64]*sent{}}
	l.room.L = &l.mu
	acks, err := b.Conn.Subscribe(l.replies+"*", l.acknowledged)
	if err != nil {
		return err
	}
	if err := acks.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	b.link = l
	changes := b.Conn.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	b.background(func(ctx context.Context) {
		defer b.Conn.RemoveStatusListener(changes)
		defer acks.Unsubscribe() //nolint:errcheck // of a connection that may be closed
		for {
			select {
			case <-ctx.Done():
				l.end(ctx.Err())
				return
			case <-changes:
				l.fail(errLinkBroke, time.Now())
			}
		}
	})
	return nil
}

// send sends a message to a stream, which takes it if the last on its subject is
// still at a position, 0 for none. The message's headers become the link's.
func (l *link) send(stream string, m *nats.Msg, last uint64) (*sent, error) {
	m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(last, 10)}
	l.mu.Lock()
	for len(l.sent) >= mostSent && !l.closed {
		l.room.Wait()
	}
	if l.closed {
		l.mu.Unlock()
		return nil, errLinkBroke
	}
	l.last++
	s := &sent{stream: stream, number: l.last, at: time.Now(), done: make(chan outcome, 1)}
	l.sent[s.number] = s
	if !l.watching {
		l.watching = true
		time.AfterFunc(ackTimeout/4, l.watch)
	}
	l.mu.Unlock()
	m.Reply = l.replies + strconv.FormatUint(s.number, 36)
	if err := l.nc.PublishMsg(m); err != nil {
		l.take(s.number)
		return nil, err
	}
	return s, nil
}

// stored waits until a stream says where it has the message. An error that is
// none of the stream's own leaves open whether it has.
func (s *sent) stored() (position uint64, err error) {
	o := <-s.done
	return o.position, o.err
}

// take ends the wait for an acknowledgement: whoever takes it tells the outcome.
func (l *link) take(number uint64) *sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sent[number]
	delete(l.sent, number)
	l.room.Signal()
	return s
}

func (l *link) acknowledged(m *nats.Msg) {
	number, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, l.replies), 36, 64)
	if err != nil {
		return
	}
	if s := l.take(number); s != nil {
		s.done <- readAck(s.stream, m)
	}
}

// readAck reads an acknowledgement of a stream: the usual one as it is written,
// and all else as JSON.
func readAck(stream string, m *nats.Msg) (o outcome) {
	if position, usual := readUsualAck(stream, m.Data); usual {
		return outcome{position: position}
	}
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return outcome{err: jetstream.ErrNoStreamResponse}
	}
	var ack struct {
		Error    *jetstream.APIError `json:"error"`
		Stream   string              `json:"stream"`
		Position uint64              `json:"seq"`
	}
	switch err := json.Unmarshal(m.Data, &ack); {
	case err != nil:
		return outcome{err: fmt.Errorf("%w: %w", jetstream.ErrInvalidJSAck, err)}
	case ack.Error != nil:
		return outcome{err: ack.Error}
	case ack.Stream != stream || ack.Position == 0:
		return outcome{err: fmt.Errorf("%w: %.100q", jetstream.ErrInvalidJSAck, m.Data)}
	}
	return outcome{position: ack.Position}
}

// readUsualAck reads what a server in no domain writes of a message that it took:
// {"stream":"NAME","seq":1}
func readUsualAck(stream string, ack []byte) (position uint64, usual bool) {
	name, ok := bytes.CutPrefix(ack, []byte(`{"stream":"`))
	if !ok || len(name) < len(stream) || string(name[:len(stream)]) != stream {
		return 0, false
	}
	rest, ok := bytes.CutPrefix(name[len(stream):], []byte(`","seq":`))
	if !ok || len(rest) < 2 || rest[len(rest)-1] != '}' {
		return 0, false
	}
	position, err := strconv.ParseUint(string(rest[:len(rest)-1]), 10, 64)
	return position, err == nil && position > 0
}

// watch ends the wait for what was not acknowledged in time, again and again
// while anything is on its way.
func (l *link) watch() {
	l.fail(errSilence, time.Now().Add(-ackTimeout))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watching = len(l.sent) > 0; l.watching {
		time.AfterFunc(ackTimeout/4, l.watch)
	}
}

// fail ends the wait for what was sent up to a time.
func (l *link) fail(why error, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for number, s := range l.sent {
		if !s.at.After(until) {
			delete(l.sent, number)
			s.done <- outcome{err: why}
		}
	}
	l.room.Broadcast()
}

// end fails all, and whatever is sent from now on.
func (l *link) end(why error) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.fail(why, time.Now())
}
