package store

import (
	"context"
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
	From           uint64   // a stream sequence to begin at; 0 is the first message
	HeadersOnly    bool     // without the messages' data
}

// Follow calls saw with what a stream holds, in order, and then with what comes
// until ctx is done; old is true for what is seen before caughtUp is closed.
func (s *Store) Follow(ctx context.Context, work *background.Group, f Feed, saw func(m Message, old bool)) (caughtUp <-chan struct{}, err error) {
	how := jetstream.OrderedConsumerConfig{FilterSubjects: f.Filters, DeliverPolicy: jetstream.DeliverAllPolicy}
	if f.LastPerSubject {
		how.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
	}
	if f.From > 0 {
		how.DeliverPolicy, how.OptStartSeq = jetstream.DeliverByStartSequencePolicy, f.From
	}
	how.HeadersOnly = f.HeadersOnly
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// A request that is cancelled may still create the consumer, and then nobody knows its name.
	c, err := s.feeds.OrderedConsumer(context.WithoutCancel(ctx), f.Stream, how)
	if err != nil {
		return nil, err
	}
	info, err := c.Info(ctx)
	if err != nil {
		s.removeOrdered(ctx, f.Stream, c)
		return nil, err
	}
	feed := &feed{saw: saw, caughtUp: make(chan struct{})}
	if info.NumPending == 0 {
		feed.complete()
	}
	consuming, err := c.Consume(feed.next, jetstream.PullMaxMessagesWithBytesLimit(feedMessages, feedBytes))
	if err != nil {
		s.removeOrdered(ctx, f.Stream, c)
		return nil, err
	}
	stop := func(ctx context.Context) {
		consuming.Stop()
		<-consuming.Closed()
		s.removeOrdered(ctx, f.Stream, c)
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
func (s *Store) removeOrdered(ctx context.Context, stream string, c jetstream.Consumer) {
	if !s.nc.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaderTimeout)
	defer cancel()
	s.RemoveConsumers(ctx, stream, c.CachedInfo().Name) //nolint:errcheck // nothing depends on it
}

// FollowAll calls saw with the last message of each subject of a stream, returns
// once it has had them all, and goes on in the background.
func (s *Store) FollowAll(ctx context.Context, work *background.Group, stream string, saw func(Message)) error {
	caughtUp, err := s.Follow(ctx, work, Feed{Stream: stream, LastPerSubject: true}, func(m Message, _ bool) { saw(m) })
	if err != nil {
		return err
	}
	return background.Await(ctx, caughtUp)
}

// A feed is a stream that is being followed.
type feed struct {
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
	f.saw(Message{Subject: m.Subject(), Sequence: meta.Sequence.Stream, Header: m.Headers(), Data: m.Data(), Time: meta.Timestamp}, old)
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
