package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/store"
)

// A restore into another number of shards restores transcripts, inboxes and rows to streams aside, makes the
// store's own, and copies every message to its new shard. What refers to a place in a stream is carried over: up to where side
// effects are applied, and what consumers have acknowledged. Cursors that clients keep are of before the copies,
// so whoever goes on from one is told again, and misses nothing.

// aside is the prefix of the names of restored streams whose messages are copied.
const aside = "OLD_"

const copiesAtOnce = 512

// setAside notes what a stream of a backup has, and gives it another name, and no subject that anybody uses.
func (r *resharder) setAside(name string, as config) string {
	r.streams = append(r.streams, name)
	switch api.Unsharded(name) {
	case api.SessionsStream:
		r.of++
		r.archive = r.archive || as.Config["retention"] == "workqueue"
		marks, _ := as.Config["metadata"].(map[string]any)
		r.logins = r.logins || marks[store.LoginsKey] != nil
	case api.InboxStream:
		r.age, _ = as.Config["max_age"].(float64)
	}
	as.Config["name"], as.Config["subjects"] = aside+name, []string{"asp.aside." + name}
	as.Config["retention"] = "limits"
	delete(as.Config, "subject_transform")
	delete(as.Config, "max_age") // what expires meanwhile is copied
	return aside + name
}

// A resharder copies what was set aside.
type resharder struct {
	js      jetstream.JetStream
	store   *store.Store
	shards  int
	of      int      // shards in the backup
	streams []string // that were set aside, by their own names
	archive bool
	options Options
	age     float64 // nanoseconds that inbox copies are kept
	logins  bool    // --dev may not open the store
}

// copyAll makes the store's streams and copies all messages. applied, in the backup, becomes what it is in the copies.
func (r *resharder) copyAll(ctx context.Context, nc *nats.Conn, applied store.Marks) (store.Marks, error) {
	var err error
	if r.js, err = jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(copiesAtOnce)); err != nil {
		return nil, err
	}
	if r.store, err = store.Open(ctx, store.Options{
		Conn: nc, Shards: r.shards, Replicas: r.options.Replicas, Archive: r.archive || r.options.Archive, InboxAge: time.Duration(r.age), Restoring: true, Dev: !r.logins,
	}); err != nil {
		return nil, err
	}
	defer r.store.Close()
	if err := r.skipCursors(ctx); err != nil {
		return nil, err
	}
	var first store.Marks // entries that are not applied
	for _, name := range r.streams {
		if err := r.copyStream(ctx, name, applied, &first); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := r.js.DeleteStream(ctx, aside+name); err != nil {
			return nil, err
		}
	}
	if applied == nil {
		return nil, nil
	}
	ends, err := r.store.Ends(ctx, api.SessionsStream)
	if err != nil {
		return nil, err
	}
	for _, position := range first {
		if position > 0 {
			ends.Before(position)
		}
	}
	return ends, nil
}

// skipCursors has the copies in inboxes begin after every position that a client may know.
func (r *resharder) skipCursors(ctx context.Context) error {
	var highest uint64
	for n := range r.of {
		name := api.ShardName(api.InboxStream, n)
		stream, err := r.js.Stream(ctx, aside+name)
		if err != nil {
			return err
		}
		highest = max(highest, store.Position(stream.CachedInfo().State.LastSeq, n, r.of))
	}
	for n := range r.shards {
		stream, err := r.js.Stream(ctx, api.ShardName(api.InboxStream, n))
		if err != nil {
			return err
		}
		if err := stream.Purge(ctx, jetstream.WithPurgeSequence(highest/uint64(r.shards)+2)); err != nil {
			return err
		}
	}
	return nil
}

// A copied message is one on its way to its shard.
type copied struct {
	subject string
	from    uint64 // its position before
	shard   int
	ack     jetstream.PubAckFuture
}

// copyStream copies the messages of one stream in their order, and then its consumers.
func (r *resharder) copyStream(ctx context.Context, name string, applied store.Marks, first *store.Marks) error {
	from, err := r.js.Stream(ctx, aside+name)
	if err != nil {
		return err
	}
	readings, err := r.readings(ctx, name)
	if err != nil {
		return err
	}
	if *first == nil {
		*first = make(store.Marks, r.shards)
	}
	var waiting []copied
	drain := func(most int) error {
		for len(waiting) > most {
			one := waiting[0]
			waiting = waiting[1:]
			select {
			case ack := <-one.ack.Ok():
				at := store.Position(ack.Sequence, one.shard, r.shards)
				if name := api.Unsharded(name); name == api.SessionsStream && one.from > applied.At(int(one.from%uint64(r.of))) && (*first)[one.shard] == 0 { //nolint:gosec // at most api.MaxShards
					(*first)[one.shard] = at
				}
				for _, c := range readings {
					c.copied(one, ack.Sequence)
				}
			case err := <-one.ack.Err():
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	number := slices.Index(shardNames(name, r.of), name)
	err = r.each(ctx, from, func(m jetstream.Msg, sequence uint64) error {
		if m.Headers().Get(store.RollupHeader) != "" {
			return nil // a row that was to go a second later
		}
		shard, _ := api.ShardOf(m.Subject(), r.shards)
		to := m.Subject()
		if r.shards > 1 {
			to = api.ToShard(shard, to)
		}
		header := m.Headers()
		header.Del(jetstream.ExpectedLastSubjSeqHeader)
		// A second attempt would come after later entries of the session: the first failure ends the restore.
		ack, err := r.js.PublishMsgAsync(&nats.Msg{Subject: to, Header: header, Data: m.Data()}, jetstream.WithRetryAttempts(0))
		if err != nil {
			return err
		}
		waiting = append(waiting, copied{m.Subject(), store.Position(sequence, number, r.of), shard, ack})
		return drain(copiesAtOnce / 2)
	})
	if err == nil {
		err = drain(0)
	}
	if err != nil {
		return err
	}
	for _, c := range readings {
		if err := r.goOn(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.Config.Durable, err)
		}
	}
	return nil
}

func shardNames(name string, of int) (names []string) {
	for n := range of {
		names = append(names, api.ShardName(api.Unsharded(name), n))
	}
	return names
}

// each calls do with every message of a stream.
func (r *resharder) each(ctx context.Context, from jetstream.Stream, do func(m jetstream.Msg, sequence uint64) error) error {
	if from.CachedInfo().State.Msgs == 0 {
		return nil
	}
	c, err := from.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	messages, err := c.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if err := do(m, meta.Sequence.Stream); err != nil || meta.NumPending == 0 {
			return err
		}
	}
}

// A reading is a consumer of an inbox that is made anew.
type reading struct {
	consumer
	floor uint64 // position up to which it has acknowledged all
	start uint64 // sequence in its new stream
}

// copied notes the first message that it has not acknowledged.
func (c *reading) copied(one copied, sequence uint64) {
	filter := c.Config.FilterSubject
	matches := one.subject == filter || strings.HasSuffix(filter, ".*") && strings.HasPrefix(one.subject, strings.TrimSuffix(filter, "*"))
	if matches && one.from > c.floor && c.start == 0 {
		c.start = sequence
	}
}

// readings are the consumers of an inbox stream. Those of other streams are the brokers', who make them anew.
func (r *resharder) readings(ctx context.Context, name string) (kept []*reading, err error) {
	if api.Unsharded(name) != api.InboxStream {
		return nil, nil
	}
	number := slices.Index(shardNames(name, r.of), name)
	all, err := consumers(ctx, r.js.Conn(), aside+name)
	for _, c := range all {
		kept = append(kept, &reading{consumer: c, floor: store.Position(c.Floor, number, r.of)})
	}
	return kept, err
}

// goOn makes a consumer in its new stream.
func (r *resharder) goOn(ctx context.Context, c *reading) error {
	shard, one := api.ShardOf(c.Config.FilterSubject, r.shards)
	if !one {
		return errors.New("it is of no principal")
	}
	name := api.ShardName(api.InboxStream, shard)
	if c.start == 0 {
		stream, err := r.js.Stream(ctx, name)
		if err != nil {
			return err
		}
		c.start = stream.CachedInfo().State.LastSeq + 1
	}
	return c.make(ctx, r.js, name, c.start)
}
