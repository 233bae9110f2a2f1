package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/internal/background"
)

// Bounds of what a consumer delivers before the broker has taken some of it: a server drops a
// connection for which too much waits.
const (
	feedMessages = 500
	feedBytes    = 4 << 20
)

// A Feed says what of a stream is followed.
type Feed struct {
	Stream         string
	Filters        []string // subjects; none are all
	LastPerSubject bool     // of what is stored already only the last message of each subject
	New            bool     // only what is stored from now on
	HeadersOnly    bool     // without the messages' data
}

// Follow calls saw with what a stream holds, in order, and then with what comes
// until ctx is done; old is true for what is seen before caughtUp is closed. With several shards, the order is
// that of each, and what is new in one may be seen before what is old in another.
func (s *Store) Follow(ctx context.Context, work *background.Group, f Feed, saw func(m Message, old bool)) (caughtUp <-chan struct{}, err error) {
	shards := s.all(f.Stream)
	if len(shards) == 1 {
		return s.follow(ctx, work, shards[0], f, saw)
	}
	var one sync.Mutex
	inTurn := func(m Message, old bool) {
		one.Lock()
		defer one.Unlock()
		saw(m, old)
	}
	var each []<-chan struct{}
	for _, p := range shards {
		done, err := s.follow(ctx, work, p, f, inTurn)
		if err != nil {
			return nil, err
		}
		each = append(each, done)
	}
	all := make(chan struct{})
	work.Go(func(ctx context.Context) {
		for _, done := range each {
			if background.Await(ctx, done) != nil {
				return
			}
		}
		close(all)
	})
	return all, nil
}

func (s *Store) follow(ctx context.Context, work *background.Group, p shard, f Feed, saw func(m Message, old bool)) (caughtUp <-chan struct{}, err error) {
	how := jetstream.OrderedConsumerConfig{FilterSubjects: f.Filters, DeliverPolicy: jetstream.DeliverAllPolicy}
	if f.LastPerSubject {
		how.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
	}
	how.HeadersOnly = f.HeadersOnly
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.New {
		info, err := s.info(ctx, p.name)
		if err != nil {
			return nil, err
		}
		how.DeliverPolicy, how.OptStartSeq = jetstream.DeliverByStartSequencePolicy, info.State.LastSeq+1
	}
	// A request that is cancelled may still create the consumer, and then nobody knows its name.
	c, err := s.feeds.OrderedConsumer(context.WithoutCancel(ctx), p.name, how)
	if err != nil {
		return nil, err
	}
	info, err := c.Info(ctx)
	if err != nil {
		s.removeOrdered(ctx, p, c)
		return nil, err
	}
	feed := &feed{shard: p, saw: saw, caughtUp: make(chan struct{})}
	if info.NumPending == 0 {
		feed.complete()
	}
	consuming, err := c.Consume(feed.next, jetstream.PullMaxMessagesWithBytesLimit(feedMessages, feedBytes))
	if err != nil {
		s.removeOrdered(ctx, p, c)
		return nil, err
	}
	stop := func(ctx context.Context) {
		consuming.Stop()
		<-consuming.Closed()
		s.removeOrdered(ctx, p, c)
	}
	if !work.Go(func(ctx context.Context) {
		defer stop(ctx)
		feed.wait(ctx, c)
	}) {
		stop(ctx)
	}
	return feed.caughtUp, nil
}

// removeOrdered removes an ordered consumer, which the server would keep for minutes. If the server
// cannot be reached, it does so by itself.
func (s *Store) removeOrdered(ctx context.Context, p shard, c jetstream.Consumer) {
	if !s.nc.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaderTimeout)
	defer cancel()
	s.removeConsumers(ctx, p, c.CachedInfo().Name) //nolint:errcheck // nothing depends on it
}

// FollowAll calls saw with the last message of each subject of a stream, returns
// once it has had them all, and goes on in the background.
func (s *Store) FollowAll(ctx context.Context, work *background.Group, stream string, saw func(Message)) error {
	caughtUp, err := s.Follow(ctx, work, Feed{Stream: stream, LastPerSubject: true}, func(m Message, _ bool) { saw(m) })
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(work.Context(), cancel)()
	return background.Await(ctx, caughtUp)
}

// A feed is a stream that is being followed.
type feed struct {
	shard    shard
	saw      func(Message, bool)
	seen     atomic.Uint64 // the consumer's sequence of the last message
	done     atomic.Bool
	caughtUp chan struct{}
}

func (f *feed) complete() {
	if f.done.CompareAndSwap(false, true) {
		close(f.caughtUp)
	}
}

func (f *feed) next(m jetstream.Msg) {
	meta, err := m.Metadata()
	if err != nil {
		return // not from a stream
	}
	old := !f.done.Load()
	f.saw(Message{Subject: m.Subject(), Sequence: f.shard.position(meta.Sequence.Stream), Header: m.Headers(), Data: m.Data(), Time: meta.Timestamp}, old)
	if !old {
		return
	}
	f.seen.Store(meta.Sequence.Consumer)
	if meta.NumPending == 0 {
		f.complete()
	}
}

// pollConsumer is how often a feed asks whether it has all: the last message that
// it waits for may have been replaced, or have expired.
const pollConsumer = 250 * time.Millisecond

// wait returns when ctx is done. Until the feed has caught up, it asks whether it has.
func (f *feed) wait(ctx context.Context, c jetstream.Consumer) {
	poll := time.NewTicker(pollConsumer)
	defer poll.Stop()
	for {
		select {
		case <-f.caughtUp:
			<-ctx.Done()
			return
		case <-ctx.Done():
			return
		case <-poll.C:
		}
		if now, err := c.Info(ctx); err == nil && now.NumPending == 0 && now.Delivered.Consumer <= f.seen.Load() {
			f.complete()
		}
	}
}
