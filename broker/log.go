package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// log reads and appends transcripts. A position is a sequence number of the
// stream, not of the session.
type log struct {
	js      jetstream.JetStream
	nc      *nats.Conn
	streams map[string]jetstream.Stream
	durable func(stream string, added int) error
	link    *link
	quorum  *quorum

	replicated atomic.Bool // other servers than the leader answer direct gets, see leader.go
}

// errStale means that the session has moved on since it was read.
var errStale = errors.New("the session has moved on")

// errUnknown means that nobody knows whether an append happened: read before
// you answer.
var errUnknown = errors.New("the append was not acknowledged")

const (
	codeWrongLastSequence = 10071 // a lost race
	codeRetryAppend       = 10164 // the same on a replicated stream, also spuriously
)

// append adds an entry if the session's last is still at position last, 0 for
// a session without any.
func (l *log) append(ctx context.Context, s performatives.SessionID, entry []byte, last uint64) (uint64, error) {
	position, err := l.tryAppend(s, entry, last)
	for again := 0; errors.Is(err, jetstream.ErrNoStreamResponse) && again < leaderTries; again++ {
		select {
		case <-time.After(jetstream.DefaultPubRetryWait): // the stream is choosing a leader
			position, err = l.tryAppend(s, entry, last)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return 0, appendError(err)
	}
	if err := l.durable(api.SessionsStream, len(entry)); err != nil {
		return 0, fmt.Errorf("%w: %w", errUnknown, err)
	}
	return position, nil
}

// leaderTries is how often an append that found nobody is sent again.
const leaderTries = 2

func (l *log) tryAppend(s performatives.SessionID, entry []byte, last uint64) (uint64, error) {
	sent, err := l.link.send(api.SessionsStream, &nats.Msg{
		Subject: api.Session(s), Data: entry, Header: nats.Header{api.FormatHeader: formatNow},
	}, last)
	if err != nil {
		return 0, err
	}
	return sent.stored()
}

var formatNow = []string{strconv.Itoa(performatives.Format)}

// errUndurable means that the disk failed: nothing is answered any more from
// what it may not hold. The next start finds out what it does hold.
var errUndurable = errors.New("the disk did not take what was written; restart the broker when it does")

// durable returns once what a stream acknowledged is as safe as it is to be.
func (b *Broker) durable(stream string, added int) error {
	if b.Durable == nil {
		return nil
	}
	if b.undurable.Load() {
		return errUndurable
	}
	err := b.Durable(stream, added)
	if err != nil && b.undurable.CompareAndSwap(false, true) {
		b.Log.Error("nothing more is accepted", zap.Error(errUndurable), zap.String("stream", stream), zap.NamedError("cause", err))
	}
	return err
}

func appendError(err error) error {
	var refused *jetstream.APIError
	if !errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	if refused.ErrorCode == codeWrongLastSequence || refused.ErrorCode == codeRetryAppend {
		return errStale
	}
	return err
}

// isStale tells that a conditional write lost a race, on whichever stream.
func isStale(err error) bool { return errors.Is(appendError(err), errStale) }

// last is the position of the session's last entry, 0 for none.
func (l *log) last(ctx context.Context, s performatives.SessionID) (uint64, error) {
	for {
		asked := time.Now()
		m, err := l.lastOn(ctx, api.SessionsStream, api.Session(s))
		switch {
		case err != nil:
			return 0, err
		case l.replicated.Load() && !l.quorum.sound(asked):
			if err := l.quorum.sure(ctx); err != nil {
				return 0, err
			}
		case m == nil:
			return 0, nil
		default:
			return m.Sequence, nil
		}
	}
}

// lastOn is the last message of a subject, nil where there is none.
func (l *log) lastOn(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	if l.replicated.Load() {
		return l.ask(ctx, stream, question{LastBy: subject})
	}
	m, err := l.streams[stream].GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil //nolint:nilnil // no message is an answer
	}
	return m, err
}

// at is the message at a position, nil where there is none.
func (l *log) at(ctx context.Context, stream string, position uint64) (*jetstream.RawStreamMsg, error) {
	if l.replicated.Load() {
		return l.ask(ctx, stream, question{Seq: position})
	}
	m, err := l.streams[stream].GetMsg(ctx, position)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil //nolint:nilnil // no message is an answer
	}
	return m, err
}

// A stored entry and its position.
type stored struct {
	position uint64
	subject  string
	data     []byte
	packed   string // how, in the archive
}

// One batch of a reading: the server ends it early once it is this large.
const (
	readBatch      = 512     // entries
	readBatchBytes = 8 << 20 // bytes, well below what it holds back for one connection
)

// read calls each with the entries on a subject (wildcards allowed) from a
// position on, in order: all that are there when it begins, at least.
func (l *log) read(ctx context.Context, subject string, from uint64, each func(stored) error) error {
	return l.readFrom(ctx, api.SessionsStream, subject, from, each)
}

// readFrom reads any stream as read does the transcripts.
func (l *log) readFrom(ctx context.Context, stream, subject string, from uint64, each func(stored) error) error {
	var end uint64
	if l.replicated.Load() {
		last, err := l.lastOn(ctx, stream, subject)
		if err != nil || last == nil || last.Sequence < from {
			return err
		}
		end = last.Sequence
	}
	from = max(from, 1)
	for left := true; left; {
		var next uint64
		var err error
		left, next, err = l.readSome(ctx, stream, subject, from, each)
		from = max(from, next)
		switch {
		case errors.Is(err, errSilent) && end > 0:
			left = false // the server that should answer is gone; the leader has the rest
		case err != nil:
			return err
		}
	}
	return l.readRest(ctx, stream, subject, from, end, each)
}

// readSome asks for one batch by a direct get, which answers with many
// messages and ends them with a status of 204 (or 404 where there are none).
func (l *log) readSome(ctx context.Context, stream, subject string, from uint64, each func(stored) error) (left bool, next uint64, err error) {
	request, err := json.Marshal(map[string]any{"batch": readBatch, "max_bytes": readBatchBytes, "seq": from, "next_by_subj": subject})
	if err != nil {
		return false, 0, err
	}
	reply := l.nc.NewRespInbox()
	sub, err := l.nc.SubscribeSync(reply)
	if err != nil {
		return false, 0, err
	}
	defer sub.Unsubscribe() //nolint:errcheck // of a connection that is closing
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return false, 0, err
	}
	if err := l.nc.PublishRequest("$JS.API.DIRECT.GET."+stream, reply, request); err != nil {
		return false, 0, err
	}
	for {
		m, err := l.nextOf(ctx, sub)
		if err != nil {
			return false, next, err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204", "404":
			pending := m.Header.Get("Nats-Num-Pending")
			return next > 0 && pending != "" && pending != "0", next, nil
		default:
			return false, next, fmt.Errorf("reading %s: status %s %s", subject, status, m.Header.Get("Description"))
		}
		position, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
		if err != nil {
			return false, next, err
		}
		next = position + 1
		if err := each(stored{position, m.Header.Get(jetstream.SubjectHeader), m.Data, m.Header.Get(packHeader)}); err != nil {
			return false, next, err
		}
	}
}

// readTimeout is how long a server that was asked to read may say nothing.
const readTimeout = 2 * time.Second

// errSilent means that whoever was asked does not answer.
var errSilent = errors.New("no answer")

func (l *log) nextOf(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	soon, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	m, err := sub.NextMsgWithContext(soon)
	if err != nil && ctx.Err() == nil && soon.Err() != nil {
		return nil, fmt.Errorf("%w: %w", errSilent, err)
	}
	return m, err
}
