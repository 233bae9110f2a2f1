package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/api"
)

// InboxAckWait is how long a reader of an inbox has to acknowledge a message
// before it is delivered again.
const InboxAckWait = 30 * time.Second

// A Consumer is a durable pull consumer for programs of other people.
type Consumer struct {
	Stream, Name, Subject, Description string // the subject tells the shard
	MaxAckPending                      int    // of a session consumer; 1 is strictly in order
}

// EnsureConsumer creates a durable consumer, or brings it up to date.
func (s *Store) EnsureConsumer(ctx context.Context, c Consumer) error {
	_, err := ensure(ctx, s.js, s.one(c.Stream, c.Subject).name, jetstream.ConsumerConfig{
		Durable: c.Name, FilterSubject: c.Subject, Description: c.Description,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: InboxAckWait, DeliverPolicy: jetstream.DeliverAllPolicy,
	})
	return err
}

// ensure creates a consumer, or brings it up to date. One of a store that was restored may begin where it had come to,
// and a consumer cannot begin elsewhere later.
func ensure(ctx context.Context, js jetstream.JetStream, stream string, c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	made, err := js.CreateOrUpdateConsumer(ctx, stream, c)
	var refused *jetstream.APIError
	if !errors.As(err, &refused) {
		return made, err
	}
	known, unknown := js.Consumer(ctx, stream, c.Durable)
	if unknown != nil || known.CachedInfo().Config.DeliverPolicy != jetstream.DeliverByStartSequencePolicy {
		return nil, err
	}
	c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, known.CachedInfo().Config.OptStartSeq
	return js.CreateOrUpdateConsumer(ctx, stream, c)
}

// SessionConsumerIdle is how long a session consumer stays without a pull.
const SessionConsumerIdle = 10 * time.Minute

// FindConsumer returns a consumer by name, where a subject's messages are, and how many messages are to be
// acknowledged; ErrNoConsumer if there is none.
func (s *Store) FindConsumer(ctx context.Context, stream, subject, name string) (found Consumer, pending uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	c, err := s.js.Consumer(ctx, s.one(stream, subject).name, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return found, 0, ErrNoConsumer
	}
	if err != nil {
		return found, 0, err
	}
	info := c.CachedInfo()
	found = Consumer{stream, name, info.Config.FilterSubject, info.Config.Description, info.Config.MaxAckPending}
	return found, info.NumPending + uint64(info.NumAckPending), nil //nolint:gosec // not negative
}

// AddSessionConsumer creates a consumer that expires when nobody pulls from it. It returns ErrConflict if the name is another's.
func (s *Store) AddSessionConsumer(ctx context.Context, c Consumer) (pending uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	made, err := s.js.CreateConsumer(ctx, s.one(c.Stream, c.Subject).name, jetstream.ConsumerConfig{
		Durable: c.Name, FilterSubject: c.Subject, Description: c.Description,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: InboxAckWait, DeliverPolicy: jetstream.DeliverAllPolicy,
		MaxAckPending: c.MaxAckPending, InactiveThreshold: SessionConsumerIdle,
	})
	if errors.Is(err, jetstream.ErrConsumerExists) {
		return 0, ErrConflict
	}
	if err != nil {
		return 0, err
	}
	return made.CachedInfo().NumPending, nil
}

// ErrNoConsumer means that there is no consumer of this name.
var ErrNoConsumer = errors.New("no such consumer")

// WaitingPulls is how many pulls wait for messages of a consumer, if it is where a subject's messages are.
func (s *Store) WaitingPulls(ctx context.Context, stream, subject, name string) (int, error) {
	c, err := s.js.Consumer(ctx, s.one(stream, subject).name, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return c.CachedInfo().NumWaiting, nil
}

// Unacknowledged is how many messages a consumer has still to see or to acknowledge.
func (s *Store) Unacknowledged(ctx context.Context, stream, name string) (uint64, error) {
	c, err := s.js.Consumer(ctx, stream, name)
	if err != nil {
		return 0, err
	}
	info := c.CachedInfo()
	return info.NumPending + uint64(max(0, info.NumAckPending)), nil
}

// RemoveConsumers removes those of the named consumers that are where a subject's messages are, all at once.
func (s *Store) RemoveConsumers(ctx context.Context, stream, subject string, names ...string) error {
	return s.removeConsumers(ctx, s.one(stream, subject), names...)
}

func (s *Store) removeConsumers(ctx context.Context, p shard, names ...string) error {
	var removals errgroup.Group
	for _, name := range names {
		removals.Go(func() error {
			err := s.js.DeleteConsumer(ctx, p.name, name)
			if errors.Is(err, jetstream.ErrConsumerNotFound) {
				return nil
			}
			return err
		})
	}
	return removals.Wait()
}

// ExpireConsumers lets the consumers of a stream that are picked expire once
// nobody has pulled from them for a time.
func (s *Store) ExpireConsumers(ctx context.Context, stream string, after time.Duration, pick func(name string) bool) error {
	all := s.streams[stream].ListConsumers(ctx)
	for c := range all.Info() {
		if !pick(c.Name) || c.Config.InactiveThreshold == after {
			continue
		}
		c.Config.InactiveThreshold = after
		if _, err := s.js.UpdateConsumer(ctx, stream, c.Config); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
	}
	return all.Err()
}

// A Queue is a durable consumer that all brokers share: each message is one
// broker's work, and another's if that one does not acknowledge it in time.
type Queue struct {
	c       jetstream.Consumer
	stream  jetstream.Stream
	shard   shard
	subject string
}

// QueueConfig says what a queue has.
type QueueConfig struct {
	Stream, Name, Subject string
	AckWait               time.Duration
	MaxAckPending         int
	New                   bool          // it begins with what is stored after it was made
	Idle                  time.Duration // it expires when nobody has pulled from it for so long; 0 is never
}

// Queue opens a queue, which is created if it is not there.
func (s *Store) Queue(ctx context.Context, q QueueConfig) (*Queue, error) {
	return s.queue(ctx, s.one(q.Stream, q.Subject), q)
}

// Queues opens a queue for each shard of the stream.
func (s *Store) Queues(ctx context.Context, q QueueConfig) (queues []*Queue, err error) {
	for _, p := range s.all(q.Stream) {
		one, err := s.queue(ctx, p, q)
		if err != nil {
			return nil, err
		}
		queues = append(queues, one)
	}
	return queues, nil
}

func (s *Store) queue(ctx context.Context, p shard, q QueueConfig) (*Queue, error) {
	config := jetstream.ConsumerConfig{
		Durable: q.Name, FilterSubject: q.Subject, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: q.AckWait, MaxAckPending: q.MaxAckPending, InactiveThreshold: q.Idle,
	}
	if q.New {
		config.DeliverPolicy = jetstream.DeliverNewPolicy
	}
	c, err := ensure(ctx, s.feeds, p.name, config)
	return &Queue{c, s.streams[p.name], p, q.Subject}, err
}

// A Delivery is a message of a queue, which has to be acknowledged.
type Delivery struct {
	Message
	m jetstream.Msg
}

// Ack says that the work is done.
func (d Delivery) Ack() error { return d.m.Ack() }

// Progress says that the work goes on, so that nobody else gets it yet.
func (d Delivery) Progress() error { return d.m.InProgress() }

// Later gives the work back; it comes again after a delay.
func (d Delivery) Later(delay time.Duration) error { return d.m.NakWithDelay(delay) }

func (q *Queue) delivery(m jetstream.Msg) (Delivery, error) {
	meta, err := m.Metadata()
	if err != nil {
		return Delivery{}, err
	}
	return Delivery{Message{Subject: m.Subject(), Sequence: q.shard.position(meta.Sequence.Stream), Header: m.Headers(), Data: m.Data(), Time: meta.Timestamp}, m}, nil
}

// Fetch takes at most n messages, and waits for them.
func (q *Queue) Fetch(n int, wait time.Duration) (all []Delivery, err error) {
	batch, err := q.c.Fetch(n, jetstream.FetchMaxWait(wait))
	if err != nil {
		return nil, err
	}
	for m := range batch.Messages() {
		d, err := q.delivery(m)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	if err := batch.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) {
		return nil, err
	}
	return all, nil
}

// A Receiver takes one message after the other, and asks for the next only when it is wanted.
type Receiver struct {
	q  *Queue
	in jetstream.MessagesContext
}

// Receive opens a receiver until Stop. A broker that dies asks for no more after the expiry.
func (q *Queue) Receive(expiry time.Duration) (*Receiver, error) {
	in, err := q.c.Messages(jetstream.PullExpiry(expiry), jetstream.PullMaxMessages(1), jetstream.WithMessagesErrOnMissingHeartbeat(false))
	return &Receiver{q, in}, err
}

// Next waits for a message.
func (r *Receiver) Next(ctx context.Context) (Delivery, error) {
	m, err := r.in.Next(jetstream.NextContext(ctx))
	if err != nil {
		return Delivery{}, err
	}
	return r.q.delivery(m)
}

// Stop ends the receiver.
func (r *Receiver) Stop() { r.in.Stop() }

// Next is the first message of the queue's stream and subject from a sequence on, nil where there is none.
func (q *Queue) Next(ctx context.Context, sequence uint64) (*Message, error) {
	return found(q.shard)(q.stream.GetMsg(ctx, sequence, jetstream.WithGetMsgSubject(q.subject)))
}

// Waiting is how many messages were not given out yet, and the stream sequence up to which
// they were.
func (q *Queue) Waiting(ctx context.Context) (messages, delivered uint64, err error) {
	info, err := q.c.Info(ctx)
	if err != nil {
		return 0, 0, err
	}
	return info.NumPending, info.Delivered.Stream, nil
}

// Consume calls do with each message until stop is called, and asks for at most so many
// at a time. stop lets what was
// delivered come to its end, unless ctx ends first. A broker that dies asks for no
// more after the expiry, so what comes then goes to another.
func (q *Queue) Consume(expiry time.Duration, most int, do func(Delivery)) (stop func(ctx context.Context), err error) {
	consuming, err := q.c.Consume(func(m jetstream.Msg) {
		if d, err := q.delivery(m); err == nil {
			do(d)
		}
	}, jetstream.PullExpiry(expiry), jetstream.PullMaxMessagesWithBytesLimit(most, feedBytes))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		consuming.Drain()
		select {
		case <-consuming.Closed():
		case <-ctx.Done():
			consuming.Stop()
		}
	}, nil
}

// Release lets the transcripts of sessions leave their stream, which denies
// deletion and gives up only what a consumer acknowledges. each is called after
// each entry.
func (s *Store) Release(ctx context.Context, subjects []string, each func()) error {
	in := map[shard][]string{}
	for _, subject := range subjects {
		p := s.one(api.SessionsStream, subject)
		in[p] = append(in[p], subject)
	}
	for p, some := range in {
		if err := s.release(ctx, p, some, each); err != nil {
			return err
		}
	}
	return nil
}

// release goes on until the stream has none of them: an acknowledgement may be lost, and a server may send nothing for a while.
func (s *Store) release(ctx context.Context, p shard, subjects []string, each func()) error {
	for {
		if done, err := s.releaseSome(ctx, p, subjects, each); err != nil || done {
			return err
		}
	}
}

// errSilent means that the server sent nothing of what it has.
var errSilent = errors.New("the server sends none of the entries that are to leave")

// releaseSome reports whether none was left before.
func (s *Store) releaseSome(ctx context.Context, p shard, subjects []string, each func()) (done bool, err error) {
	c, err := s.js.CreateConsumer(ctx, p.name, jetstream.ConsumerConfig{
		FilterSubjects: subjects, AckPolicy: jetstream.AckExplicitPolicy, AckWait: InboxAckWait, MaxAckPending: -1,
		MemoryStorage: true, InactiveThreshold: time.Minute, Description: "sessions that leave for the archive", HeadersOnly: true,
	})
	if err != nil {
		return false, err
	}
	defer func() {
		err = errors.Join(err, s.removeConsumers(context.WithoutCancel(ctx), p, c.CachedInfo().Name))
	}()
	left := c.CachedInfo().NumPending
	if left == 0 {
		return true, nil
	}
	for {
		batch, err := c.FetchNoWait(batchMessages)
		if err != nil {
			return false, err
		}
		var last jetstream.Msg
		for m := range batch.Messages() {
			if last = m; left == 1 {
				break
			}
			left--
			if err := m.Ack(); err != nil {
				return false, err
			}
			each()
		}
		if last == nil {
			return false, cmp.Or(batch.Error(), errSilent)
		}
		if left == 1 {
			return false, confirm(ctx, last)
		}
	}
}

// confirm acknowledges a message and waits until the server confirms it.
func confirm(ctx context.Context, m jetstream.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	return m.DoubleAck(ctx)
}
