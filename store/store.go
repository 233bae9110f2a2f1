// Package store is all that parley keeps in NATS JetStream: streams, buckets,
// consumers, and how they are read and written.
//
//	s, err := store.Open(ctx, store.Options{Conn: nc})
//	if err != nil { … }
//	defer s.Close()
//	sequence, err := s.Append(ctx, session, entry, beside, last)
//	switch {
//	case errors.Is(err, store.ErrConflict): // another broker was faster: read, then try again
//	case errors.Is(err, store.ErrIndeterminate): // read what happened
//	}
//
// Every write that others may race for names the last sequence that its writer
// has seen on the subject. A reading is never older than what was acknowledged
// before it began, also on a cluster that has just lost its leader. JetStream's
// own types appear here and in no other package.
package store

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
)

// Options say what is opened.
type Options struct {
	Conn     *nats.Conn    // to the account that holds JetStream and nobody but brokers
	Bulk     *nats.Conn    // another one to it, over which is read what may be large; nil is Conn
	Feeds    *nats.Conn    // a third, over which consumers deliver; nil is Conn
	Replicas int           // of each stream; 0 is as many as it has, 1 for a new one
	Shards   int           // of transcripts, inboxes and the session list; 0 is 1, see shards.go
	InboxAge time.Duration // how long inbox copies are kept; 0 is as long as they are, 7 days at first
	Archive  bool          // sessions that are over may leave the transcript stream
	Lost     []string      // streams that may be missing, whatever they held: empty ones are made
	Log      *zap.Logger   // nil is silent

	ArchiveIfThere bool // a store that was made without an archive is no error
	Restoring      bool // the store is being restored: others may not open it before that has ended
	Dev            bool // nobody logs in, and acts may be unsigned: not in a store that was made otherwise

	// Sync, if there is one, returns once what a stream acknowledged is on disk, the message with a
	// sequence in particular, 0 for none. Nil: an acknowledgement is all there is to wait for.
	Sync func(stream string, sequence uint64) error

	// Broken, if there is one, is why the server stores nothing more until it is started again; nil if it does.
	Broken func() error
}

// A Store is open until it is closed.
type Store struct {
	o       Options
	nc      *nats.Conn
	js      jetstream.JetStream
	feeds   jetstream.JetStream // of consumers that deliver to this broker
	streams map[string]jetstream.Stream
	shards  int
	sharded map[string][]shard

	own, bulk batchReader

	publisher *publisher
	lease     *lease
	work      *background.Group

	replicated atomic.Bool             // other servers than the leader answer direct gets, see leader.go
	failed     atomic.Pointer[failure] // of the last append, nil if it was stored
	servers    atomic.Pointer[Servers] // as Writable found them last
	syncFailed atomic.Bool             // what was acknowledged may not be on disk, and never will be known to be
}

// Open makes sure that the streams exist. It waits for JetStream while a
// cluster has no leader yet.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if err := CheckServer(o.Conn.ConnectedServerVersion()); err != nil {
		return nil, err
	}
	js, err := jetstream.New(o.Conn)
	if err != nil {
		return nil, err
	}
	s := &Store{o: o, nc: o.Conn, js: js, work: background.New()}
	s.feeds = js
	if o.Feeds != nil {
		if s.feeds, err = jetstream.New(o.Feeds); err != nil {
			return nil, err
		}
	}
	s.own = newBatchReader(o.Conn)
	if s.bulk = s.own; o.Bulk != nil {
		s.bulk = newBatchReader(o.Bulk)
	}
	s.lease = &lease{nc: o.Conn, work: s.work}
	if s.publisher, err = newPublisher(o.Conn, s.work); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.Patiently(ctx, "streams", s.openStreams); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the store's own goroutines and subscriptions; the connection stays.
func (s *Store) Close() { s.work.Close() }

// InboxAge is how long inbox copies are kept.
func (s *Store) InboxAge() time.Duration { return s.o.InboxAge }

// Archives reports whether there is an archive, whether this broker fills it or not.
func (s *Store) Archives() bool { return s.streams[api.ArchiveStream] != nil }

// Sync returns once what a stream acknowledged is as safe as it is to be, the message
// with a sequence in particular, 0 for none.
func (s *Store) Sync(stream string, sequence uint64) error {
	if s.o.Sync == nil {
		return nil
	}
	if s.syncFailed.Load() {
		return ErrSyncFailed
	}
	err := s.o.Sync(stream, sequence)
	if err != nil && s.syncFailed.CompareAndSwap(false, true) {
		s.o.Log.Error("nothing more is accepted", zap.Error(ErrSyncFailed), zap.String("stream", stream), zap.NamedError("cause", err))
	}
	return err
}

// SyncFailed reports whether a Sync has ever failed: what was read may not be on disk.
func (s *Store) SyncFailed() bool { return s.syncFailed.Load() }

// Broken is why nothing is stored any more until a restart; nil if something may be.
func (s *Store) Broken() error {
	switch {
	case s.syncFailed.Load():
		return ErrSyncFailed
	case s.o.Broken != nil:
		return s.o.Broken()
	default:
		return nil
	}
}

// info asks how a stream stands.
func (s *Store) info(ctx context.Context, stream string) (*jetstream.StreamInfo, error) {
	known, err := s.stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	info, err := known.Info(ctx)
	if err == nil && stream == api.SessionsStream {
		s.scaled(info)
	}
	return info, err
}

// Streams lists the fixed streams as the server has them, by name.
func (s *Store) Streams(ctx context.Context) (all []api.StreamRow, err error) {
	for _, name := range slices.Sorted(maps.Keys(s.streams)) {
		info, err := s.streams[name].Info(ctx)
		if err != nil {
			return nil, err
		}
		row := api.StreamRow{Name: name, Messages: info.State.Msgs, Bytes: info.State.Bytes, Replicas: info.Config.Replicas}
		if info.Cluster != nil {
			row.Leader = info.Cluster.Leader
		}
		if fault := quorum(info); fault != nil {
			row.Fault = fault.Error()
		}
		all = append(all, row)
	}
	return all, nil
}

// stream finds one of the fixed streams, or that of a bucket.
func (s *Store) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if known := s.streams[name]; known != nil {
		return known, nil
	}
	return s.js.Stream(ctx, name)
}

// scaled notes how many copies the transcripts have now; another broker may
// have been started with another number.
func (s *Store) scaled(now *jetstream.StreamInfo) { s.replicated.Store(now.Config.Replicas > 1) }

// Put stores a message, whatever is on its subject.
func (s *Store) Put(ctx context.Context, m Message) (sequence uint64, err error) {
	return s.put(ctx, m)
}

// PutIf stores a message if the last one on its subject still has the sequence
// last, 0 for none. Otherwise it returns ErrConflict.
func (s *Store) PutIf(ctx context.Context, m Message, last uint64) (sequence uint64, err error) {
	_, p := s.sent(m.Subject)
	sequence, err = s.put(ctx, m, jetstream.WithExpectLastSequencePerSubject(p.from(last)))
	return sequence, writeError(err)
}

func (s *Store) put(ctx context.Context, m Message, options ...jetstream.PublishOpt) (uint64, error) {
	if m.Header == nil {
		m.Header = Header{}
	}
	to, p := s.sent(m.Subject)
	if err := s.Broken(); err != nil {
		return 0, err // the server would not answer
	}
	ack, err := s.js.PublishMsg(ctx, &nats.Msg{Subject: to, Header: m.Header, Data: m.Data}, options...)
	if err != nil {
		return 0, err
	}
	return p.position(ack.Sequence), nil
}

// Purge takes what is on a subject out of a stream that allows it.
func (s *Store) Purge(ctx context.Context, stream, subject string) error {
	for _, p := range s.on(stream, subject) {
		known, err := s.stream(ctx, p.name)
		if err != nil {
			return err
		}
		if err := known.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return err
		}
	}
	return nil
}
