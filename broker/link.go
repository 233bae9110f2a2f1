package broker

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
)

// A link is the connection to the server, with what was sent to streams over it
// and is not acknowledged yet. All acknowledgements come to one subscription,
// since each act waits for two of them. What was sent over a connection that broke
// is never answered: nobody has to wait for it.
type link struct {
	nc   *nats.Conn
	sent *slots[*sent]
}

// sent is a message on its way into a stream.
type sent struct {
	stream string
	done   chan outcome // one, in any case
}

// An outcome is where a message stands in its stream, or why nobody knows.
type outcome struct {
	position uint64
	err      error
}

var (
	errLinkBroke = errors.New("the connection to the NATS server broke")
	errSilence   = errors.New("there was no answer in time")
)

// mostSent bounds what is on its way: a server drops what it has no room for.
const mostSent = 4096

func (b *Broker) openLink(context.Context) error {
	l := &link{nc: b.Conn, sent: newSlots(b.Conn.NewInbox()+".", mostSent, ackTimeout, func(s *sent, why error) {
		s.done <- outcome{err: why}
	})}
	acks, err := b.Conn.Subscribe(l.sent.prefix+"*", l.acknowledged)
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
				l.sent.end(ctx.Err())
				return
			case <-changes:
				l.sent.fail(errLinkBroke, time.Now())
			}
		}
	})
	return nil
}

// send sends a message to a stream, which takes it if the last on its subject is
// still at a position, 0 for none. The message's headers become the link's.
func (l *link) send(stream string, m *nats.Msg, last uint64) (*sent, error) {
	m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(last, 10)}
	s := &sent{stream: stream, done: make(chan outcome, 1)}
	reply, err := l.sent.put(s)
	if err != nil {
		return nil, err
	}
	m.Reply = reply
	if err := l.nc.PublishMsg(m); err != nil {
		l.sent.take(reply)
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

func (l *link) acknowledged(m *nats.Msg) {
	if s, waited := l.sent.take(m.Subject); waited {
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
