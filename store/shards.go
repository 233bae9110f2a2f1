package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// Transcripts, inboxes and the session list may be in several streams each, their shards, so that
// the servers of a cluster share the work of leading them. How many there are is decided when a store is
// made. A session's transcript and row, and a principal's inbox, are whole in one shard, which
// follows from the subject.
//
// What goes to a shard is published on a subject that names the shard, and stored on the usual
// one. So a reader has to know the stream, and nothing else.
//
// A position is where a message is in the shards of a stream: its sequence in its shard times the number
// of shards, plus the number of the shard. All sequences of sharded streams that leave or enter this package are
// positions. With one shard, a position is a sequence.

// shardsKey is the metadata of api.ShardsStream that says how many there are.
const shardsKey = "parley-shards"

// ErrShards is for a store that was made with another number of shards.
var ErrShards = errors.New("the store has another number of shards")

// A shard is one stream.
type shard struct {
	name       string
	number, of uint64
}

// position is that of a message with a sequence, 0 for none.
func (p shard) position(sequence uint64) uint64 {
	if sequence == 0 {
		return 0
	}
	return sequence*p.of + p.number
}

// Position is that of a message with a sequence in a shard, 0 for none.
func Position(sequence uint64, number, of int) uint64 {
	return shard{number: uint64(number), of: uint64(of)}.position(sequence) //nolint:gosec // at most api.MaxShards
}

// from is the sequence of the message at a position, or of the first one after it.
func (p shard) from(position uint64) uint64 { return (position + p.of - 1 - p.number) / p.of }

// all are the shards of a stream.
func (s *Store) all(stream string) []shard {
	if all := s.sharded[stream]; all != nil {
		return all
	}
	return []shard{{stream, 0, 1}}
}

func shardsIn(streams []string, of int) map[string][]shard {
	sharded := map[string][]shard{}
	for _, stream := range streams {
		for n := range of {
			sharded[stream] = append(sharded[stream], shard{api.ShardName(stream, n), uint64(n), uint64(of)})
		}
	}
	return sharded
}

// on are the shards of a stream that have messages on a subject: one, unless it has wildcards.
func (s *Store) on(stream, subject string) []shard {
	all := s.all(stream)
	if n, one := api.ShardOf(subject, len(all)); one {
		return all[n : n+1]
	}
	return all
}

// one is the shard of a subject without wildcards.
func (s *Store) one(stream, subject string) shard { return s.on(stream, subject)[0] }

// at is the shard of a position.
func (s *Store) at(stream string, position uint64) shard {
	all := s.all(stream)
	return all[position%uint64(len(all))]
}

// sent is the subject on which a message is sent to be stored on another, and the shard that it gets to.
func (s *Store) sent(subject string) (to string, p shard) {
	if n, one := api.ShardOf(subject, s.shards); one && s.shards > 1 {
		return api.ToShard(n, subject), shard{number: uint64(n), of: uint64(s.shards)} //nolint:gosec // at most api.MaxShards
	}
	return subject, shard{of: 1}
}

// Shards is how many shards the transcripts have.
func (s *Store) Shards() int { return s.shards }

// Marks are a position for each shard of a stream, 0 for none.
type Marks []uint64

// Lower makes each mark the lower of two.
func (m Marks) Lower(other Marks) {
	for n := range m {
		m[n] = min(m[n], other.At(n))
	}
}

// Raise makes each mark the higher of two.
func (m Marks) Raise(other Marks) {
	for n := range m {
		m[n] = max(m[n], other.At(n))
	}
}

// Before lowers the mark of a message's shard to what is before the message.
func (m Marks) Before(position uint64) {
	n := position % uint64(len(m))
	m[n] = min(m[n], position-1)
}

// After raises the mark of a message's shard to the message.
func (m Marks) After(position uint64) {
	n := position % uint64(len(m))
	m[n] = max(m[n], position)
}

// Since is how many messages there may be between earlier marks and these.
func (m Marks) Since(earlier Marks) (messages uint64) {
	for n := range m {
		if before := earlier.At(n); m[n] > before {
			messages += (m[n] - before) / uint64(len(m))
		}
	}
	return messages
}

// At is the mark of a shard.
func (m Marks) At(n int) uint64 {
	if n < len(m) {
		return m[n]
	}
	return 0
}

// MarshalJSON writes one mark as a number.
func (m Marks) MarshalJSON() ([]byte, error) {
	if len(m) == 1 {
		return strconv.AppendUint(nil, m[0], 10), nil
	}
	return json.Marshal([]uint64(m))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *Marks) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '[' {
		*m = Marks{0}
		return json.Unmarshal(data, &(*m)[0])
	}
	return json.Unmarshal(data, (*[]uint64)(m))
}

// Ends are the positions of the newest messages of a stream.
func (s *Store) Ends(ctx context.Context, stream string) (Marks, error) {
	shards := s.all(stream)
	ends := make(Marks, len(shards))
	for n, p := range shards {
		info, err := s.info(ctx, p.name)
		if err != nil {
			return nil, err
		}
		ends[n] = p.position(info.State.LastSeq)
	}
	return ends, nil
}

// End is the position of the newest message of the shard in which a subject's messages are.
func (s *Store) End(ctx context.Context, stream, subject string) (uint64, error) {
	p := s.one(stream, subject)
	info, err := s.info(ctx, p.name)
	if err != nil {
		return 0, err
	}
	return p.position(info.State.LastSeq), nil
}

// ReadSince is Read of the transcripts of all sessions, after marks: in order within a shard.
func (s *Store) ReadSince(ctx context.Context, after Marks, each func(Message) error) error {
	return s.readSince(ctx, s.bulk, after, each)
}

// ReadSentSince is ReadSent likewise.
func (s *Store) ReadSentSince(ctx context.Context, after Marks, each func(Message) error) error {
	return s.readSince(ctx, s.own, after, each)
}

func (s *Store) readSince(ctx context.Context, r batchReader, after Marks, each func(Message) error) error {
	from := func(p shard) uint64 { return after.At(int(p.number)) + 1 } //nolint:gosec // at most api.MaxShards
	return s.readOver(ctx, r, s.all(api.SessionsStream), api.AllSessions, from, each)
}

// shardsOf is how many shards a store has, 0 if there is none yet.
func shardsOf(ctx context.Context, js jetstream.JetStream) (int, error) {
	known, err := js.Stream(ctx, api.ShardsStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if _, err = js.Stream(ctx, api.SessionsStream); errors.Is(err, jetstream.ErrStreamNotFound) {
			return 0, nil
		}
		return 1, err
	}
	if err != nil {
		return 0, err
	}
	said := known.CachedInfo().Config.Metadata[shardsKey]
	n, err := strconv.Atoi(said)
	if err != nil || n < 2 || n > api.MaxShards {
		return 0, fmt.Errorf("%s: %s is %q", api.ShardsStream, shardsKey, said)
	}
	return n, nil
}

// shardsStream is the configuration of that stream. Nothing is ever stored in it.
func shardsStream(shards int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: api.ShardsStream, Subjects: []string{api.AllSessions, api.AllInboxes, api.AllIndex, api.AllOver},
		Description: "says how many shards there are, and keeps out brokers that know of none",
		MaxMsgSize:  1, Metadata: map[string]string{shardsKey: strconv.Itoa(shards)},
	}
}

// countShards insists on the number of shards that the store was made with.
func (s *Store) countShards(ctx context.Context) error {
	known, err := shardsOf(ctx, s.js)
	if err != nil {
		return err
	}
	if slices.Contains(s.o.Lost, api.ShardsStream) && known == 1 {
		there, err := streamNames(ctx, s.js)
		if err != nil {
			return err
		}
		known = 0
		for name := range there {
			if isTranscripts(name) {
				known++
			}
		}
	}
	s.shards = max(1, s.o.Shards)
	if known > 0 && known != s.shards {
		return fmt.Errorf("%w: %d, not %d", ErrShards, known, s.shards)
	}
	s.sharded = shardsIn(api.ShardedStreams, s.shards)
	return nil
}

// split makes the configurations of a stream's shards out of its own.
func split(c jetstream.StreamConfig, shards int) []jetstream.StreamConfig {
	if shards == 1 || !slices.Contains(api.ShardedStreams, c.Name) {
		return []jetstream.StreamConfig{c}
	}
	all := make([]jetstream.StreamConfig, shards)
	for n := range all {
		one := c
		one.Name, one.Subjects = api.ShardName(c.Name, n), nil
		for _, subject := range c.Subjects {
			one.Subjects = append(one.Subjects, api.ToShard(n, subject))
		}
		one.SubjectTransform = &jetstream.SubjectTransformConfig{Source: api.ToShard(n, api.AllStored), Destination: api.AllStored}
		one.Description = fmt.Sprintf("%s; shard %d of %d", c.Description, n+1, shards)
		all[n] = one
	}
	return all
}

// Shard is the shard of a session's transcript.
func (s *Store) Shard(id performatives.SessionID) int {
	n, _ := api.ShardOf(api.Session(id), s.shards)
	return n
}
