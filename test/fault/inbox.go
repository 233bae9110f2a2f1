package fault

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// mailboxes keep what was read of inboxes whose messages are of several
// sessions: reading acknowledges.
type mailboxes struct {
	sync.Mutex
	read map[string][]received // by subject, in the order of the stream
}

// A received message has a place in the inbox stream.
type received struct {
	jetstream.Msg
	at uint64
}

// take acknowledges a message and keeps it in its place. What was lost on its way comes again
// later, after others, and a server that is killed may forget an acknowledgement and send a message
// again: that is no second copy.
func (b *mailboxes) take(ctx context.Context, m jetstream.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	one := received{m, meta.Sequence.Stream}
	i, kept := slices.BinarySearchFunc(b.read[m.Subject()], one, func(a, b received) int { return cmp.Compare(a.at, b.at) })
	if !kept {
		b.read[m.Subject()] = slices.Insert(b.read[m.Subject()], i, one)
	}
	for {
		one, cancel := context.WithTimeout(ctx, once)
		err := m.DoubleAck(one)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// received holds a party's inbox against the transcript's lines, once n entries
// of the session are there, and returns their numbers.
func (s *Session) received(party performatives.Agent, lines [][]byte, n int) []uint64 {
	s.witness.Helper()
	var sequences []uint64
	for _, m := range s.collect(party, n) {
		entry, err := transcript.Read(m.Data())
		if err != nil {
			s.witness.Fatal(err)
		}
		at := entry.Stamp.Sequence
		if at >= uint64(len(lines)) || !bytes.Equal(lines[at], m.Data()) {
			s.witness.Errorf("%s has received what is not entry %d", party, at)
		}
		sequences = append(sequences, at)
	}
	return sequences
}

// once is how long one request to JetStream may take. In an election each server
// may take another one for the leader, and none answers: what is to be patient
// has to ask again.
const once = 5 * time.Second

// consumer finds a party's durable consumer in whichever stream it is, and asks no broker: one may be
// stopped. A cluster may have no leader for it for a while.
func (w *Witness) consumer(ctx context.Context, party performatives.Agent) jetstream.Consumer {
	w.Helper()
	for {
		consumer, err := w.find(ctx, party)
		if err == nil {
			return consumer
		}
		if ctx.Err() != nil {
			w.Fatalf("%s: %v", party, err)
		}
		w.nc.FlushTimeout(time.Second) //nolint:errcheck // it may be down
	}
}

func (w *Witness) find(ctx context.Context, party performatives.Agent) (consumer jetstream.Consumer, err error) {
	for n := range api.MaxShards {
		one, cancel := context.WithTimeout(ctx, once)
		consumer, err = w.js.Consumer(one, api.ShardName(api.InboxStream, n), party.Token())
		cancel()
		if !errors.Is(err, jetstream.ErrConsumerNotFound) {
			break
		}
	}
	return consumer, err
}

// collect reads a party's inbox until n entries of the session are there, and
// then whatever else is.
func (s *Session) collect(party performatives.Agent, n int) []received {
	s.witness.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	consumer := s.witness.consumer(ctx, party)
	subject := api.Inbox(party, s.ID)
	boxes := s.witness.boxes
	boxes.Lock()
	defer boxes.Unlock()
	for {
		batch, err := consumer.FetchNoWait(1000)
		if err != nil {
			s.witness.Fatal(err)
		}
		fetched := 0
		for m := range batch.Messages() {
			fetched++
			if err := boxes.take(ctx, m); err != nil {
				s.witness.Fatal(err)
			}
		}
		if fetched > 0 {
			continue
		}
		if len(boxes.read[subject]) >= n {
			break
		}
		m, err := consumer.Next(jetstream.FetchMaxWait(once))
		switch {
		case err == nil:
		case ctx.Err() == nil:
			s.witness.nc.FlushTimeout(time.Second) //nolint:errcheck // it may be down
			continue
		default:
			s.witness.Errorf("%s waits for %d entries: %v", party, n, err)
			return slices.Clone(boxes.read[subject])
		}
		if err := boxes.take(ctx, m); err != nil {
			s.witness.Fatal(err)
		}
	}
	return slices.Clone(boxes.read[subject])
}

// Untouched waits until parties that said one act each have all that the
// transcript has, and asks no broker anything meanwhile: whoever delivers it does
// so unasked. It needs a server that lets everybody look into its streams.
func (s *Session) Untouched(parties ...performatives.Agent) {
	s.witness.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	entries := s.stored(ctx)
	for _, party := range parties {
		if got := len(s.collect(party, entries-1)); got < entries-1 { // what came too late to die may be there as well
			s.witness.Errorf("session %s: %s has received %d of the others' %d entries", s.ID, party, got, entries-1)
		}
	}
}

// stored is how many entries the transcript has in its stream, whichever that is.
func (s *Session) stored(ctx context.Context) int {
	s.witness.Helper()
	for n := range api.MaxShards {
		stream, err := s.witness.js.Stream(ctx, api.ShardName(api.SessionsStream, n))
		if err != nil {
			s.witness.Fatal(err)
		}
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(api.Session(s.ID)))
		if err != nil {
			s.witness.Fatal(err)
		}
		if entries := info.State.Subjects[api.Session(s.ID)]; entries > 0 {
			return int(entries) //nolint:gosec // a handful
		}
	}
	return 0
}

// Delivered waits until parties have all that is in the transcript now. What
// comes after it may be there as well: an act that nobody waited for any more.
func (s *Session) Delivered(parties ...performatives.Agent) {
	s.witness.Helper()
	lines := s.transcript()
	for _, party := range parties {
		var want [][]byte
		for _, line := range lines {
			entry, err := transcript.Read(line)
			if err != nil {
				s.witness.Fatal(err)
			}
			if entry.Message.Sender != party {
				want = append(want, line)
			}
		}
		got := s.collect(party, len(want))
		for i, line := range want {
			if i >= len(got) || !bytes.Equal(got[i].Data(), line) {
				s.witness.Errorf("session %s: %s has received %d entries, and not %s after %d", s.ID, party, len(got), line, i)
				break
			}
		}
	}
}

// SlowestCopy is the longest time from when an entry was accepted to when a party's copy of it was
// stored, and how many copies there are.
func (s *Session) SlowestCopy(parties ...performatives.Agent) (slowest time.Duration, copies int) {
	s.witness.Helper()
	for _, party := range parties {
		for _, m := range s.collect(party, 0) {
			entry, err := transcript.Read(m.Data())
			testkit.Must(s.witness, err)
			accepted, err := entry.Stamp.AcceptedAt()
			testkit.Must(s.witness, err)
			meta, err := m.Metadata()
			testkit.Must(s.witness, err)
			slowest = max(slowest, meta.Timestamp.Sub(accepted))
			copies++
		}
	}
	return slowest, copies
}
