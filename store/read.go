package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Last is the last message on a subject, nil where there is none.
func (s *Store) Last(ctx context.Context, stream, subject string) (*Message, error) {
	return s.last(ctx, s.one(stream, subject), subject)
}

func (s *Store) last(ctx context.Context, p shard, subject string) (*Message, error) {
	if s.replicated.Load() {
		return s.askLeader(ctx, p, question{LastBy: subject})
	}
	return found(p)(s.streams[p.name].GetLastMsgForSubject(ctx, subject))
}

// At is the message at a position, nil where there is none.
func (s *Store) At(ctx context.Context, stream string, position uint64) (*Message, error) {
	p := s.at(stream, position)
	if s.replicated.Load() {
		return s.askLeader(ctx, p, question{Sequence: p.from(position)})
	}
	return found(p)(s.streams[p.name].GetMsg(ctx, p.from(position)))
}

// Next is the first message on a subject from a sequence on, nil where there is none, of a stream that has no shards.
func (s *Store) Next(ctx context.Context, stream string, from uint64, subject string) (*Message, error) {
	p := s.one(stream, subject)
	return found(p)(s.streams[p.name].GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject)))
}

func found(p shard) func(*jetstream.RawStreamMsg, error) (*Message, error) {
	return func(m *jetstream.RawStreamMsg, err error) (*Message, error) {
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil, nil //nolint:nilnil // no message is an answer
		case err != nil:
			return nil, err
		}
		return &Message{Subject: m.Subject, Sequence: p.position(m.Sequence), Header: m.Header, Data: m.Data, Time: m.Time}, nil
	}
}

// The server drops a connection that has too many bytes to take, whoever asked for them. So a
// batch of a reading ends early once it is this large, the next one is asked for only when it has been
// taken whole, and only so many are on their way on a connection at once.
const (
	batchMessages = 512
	batchBytes    = 1 << 20
	maxBatches    = 4
)

// A batchReader reads batches over a connection.
type batchReader struct {
	nc    *nats.Conn
	slots chan struct{} // one for each batch that is on its way
}

func newBatchReader(nc *nats.Conn) batchReader {
	return batchReader{nc, make(chan struct{}, maxBatches)}
}

// Read calls each with the messages on a subject (wildcards allowed) from a
// sequence on, in order, one shard after the other: at least all that were acknowledged when it begins. An error of
// each ends it; ErrEnough ends it without an error.
func (s *Store) Read(ctx context.Context, stream, subject string, from uint64, each func(Message) error) error {
	return s.readOver(ctx, s.bulk, s.on(stream, subject), subject, func(shard) uint64 { return from }, each)
}

// ReadSent is Read that also sees what this store has sent before and that is not acknowledged yet,
// unless it was lost: it reads over the connection of the writes.
func (s *Store) ReadSent(ctx context.Context, stream, subject string, from uint64, each func(Message) error) error {
	return s.readOver(ctx, s.own, s.on(stream, subject), subject, func(shard) uint64 { return from }, each)
}

// ErrEnough is what each returns to end a reading that has what it needs.
var ErrEnough = errors.New("the reading has what it needs")

// readOver reads one shard after the other, each from a position on.
func (s *Store) readOver(ctx context.Context, r batchReader, shards []shard, subject string, from func(shard) uint64, each func(Message) error) error {
	for _, p := range shards {
		if err := s.readAll(ctx, r, p, subject, from(p), each); errors.Is(err, ErrEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) readAll(ctx context.Context, r batchReader, p shard, subject string, from uint64, each func(Message) error) error {
	var end uint64
	if s.replicated.Load() {
		last, err := s.last(ctx, p, subject)
		if err != nil || last == nil || last.Sequence < from {
			return err
		}
		end = last.Sequence
	}
	from = max(from, 1)
	for more := true; more; {
		var batch []Message
		var err error
		batch, more, err = r.read(ctx, p, subject, from)
		for _, m := range batch {
			if err := each(m); err != nil {
				return err
			}
			from = m.Sequence + 1
		}
		switch {
		case errors.Is(err, errNoAnswer) && end > 0:
			more = false // the server that should answer is gone; the leader has the rest
		case err != nil:
			return err
		}
	}
	return s.readRest(ctx, p, subject, from, end, each)
}

// read asks for one batch by a direct get. The answer is many messages, and
// then one with status 204, or 404 where there are none.
func (r batchReader) read(ctx context.Context, p shard, subject string, from uint64) (batch []Message, more bool, err error) {
	request, err := json.Marshal(map[string]any{"batch": batchMessages, "max_bytes": batchBytes, "seq": max(1, p.from(from)), "next_by_subj": subject})
	if err != nil {
		return nil, false, err
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	reply := r.nc.NewRespInbox()
	answers := make(chan *nats.Msg, batchMessages+1) // a subscription's own has room for 65,536
	sub, err := r.nc.ChanSubscribe(reply, answers)
	if err != nil {
		return nil, false, err
	}
	defer sub.Unsubscribe() //nolint:errcheck // of a connection that is closing
	if err := r.nc.PublishRequest("$JS.API.DIRECT.GET."+p.name, reply, request); err != nil {
		return nil, false, err
	}
	silent := time.NewTimer(answerTimeout)
	defer silent.Stop()
	for {
		var m *nats.Msg
		silent.Reset(answerTimeout)
		select { // also when nobody waits for it any more: it is on its way
		case got, open := <-answers:
			if m = got; !open {
				return batch, false, nats.ErrConnectionClosed
			}
		case <-silent.C:
			return batch, false, fmt.Errorf("%w: %w", errNoAnswer, nats.ErrTimeout)
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204", "404":
			pending := m.Header.Get("Nats-Num-Pending")
			return batch, len(batch) > 0 && pending != "" && pending != "0", nil
		case "503":
			return batch, false, nats.ErrNoResponders
		default:
			return batch, false, fmt.Errorf("reading %s: status %s %s", subject, status, m.Header.Get("Description"))
		}
		sequence, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
		if err != nil {
			return batch, false, err
		}
		batch = append(batch, Message{Subject: m.Header.Get(jetstream.SubjectHeader), Sequence: p.position(sequence), Header: m.Header, Data: m.Data})
	}
}

// answerTimeout is how long a server that was asked to read may be silent.
const answerTimeout = 2 * time.Second

var errNoAnswer = errors.New("no answer")

// SubjectPage is how many subjects the server names at once.
const SubjectPage = 100_000

// Subjects are those of a stream that match a filter, sorted, from an offset on,
// at most SubjectPage of them, and how many there are in all.
func (s *Store) Subjects(ctx context.Context, stream, filter string, from int) (subjects []string, total int, err error) {
	counts, total, err := s.Counts(ctx, stream, filter, from)
	return slices.Sorted(maps.Keys(counts)), total, err
}

// Counts are the messages of each subject of a stream that matches a filter, for a page
// like that of Subjects.
func (s *Store) Counts(ctx context.Context, stream, filter string, from int) (counts map[string]uint64, total int, err error) {
	counts = map[string]uint64{}
	for _, p := range s.on(stream, filter) {
		some, of, err := s.countIn(ctx, p, filter, max(0, from-total))
		if err != nil {
			return nil, 0, err
		}
		if total += of; from >= total {
			continue
		}
		for _, subject := range slices.Sorted(maps.Keys(some)) {
			if len(counts) == SubjectPage {
				break
			}
			counts[subject] = some[subject]
		}
	}
	return counts, total, nil
}

func (s *Store) countIn(ctx context.Context, p shard, filter string, from int) (counts map[string]uint64, total int, err error) {
	request, err := json.Marshal(map[string]any{"subjects_filter": filter, "offset": from})
	if err != nil {
		return nil, 0, err
	}
	reply, err := s.nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+p.name, request)
	if err != nil {
		return nil, 0, err
	}
	var info struct {
		Error *jetstream.APIError `json:"error"`
		Total int                 `json:"total"`
		State struct {
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	if err := json.Unmarshal(reply.Data, &info); err != nil {
		return nil, 0, err
	}
	if info.Error != nil {
		return nil, 0, info.Error
	}
	return info.State.Subjects, info.Total, nil
}
