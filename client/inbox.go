package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// An inbox is what the others say. One feed brings what the principal's shared consumer hands out, and
// one for each session that is read by itself what its own consumer does. A message that two feeds bring
// is one message.
type inbox struct {
	client *Client

	mu sync.Mutex
	mailbox
	feeds  map[performatives.SessionID]*feed // "" is the shared one, and the only one over HTTP
	cursor atomic.Uint64                     // over HTTP: of the last event
	closed bool
}

// A feed pulls from a consumer while somebody reads, and for a little while after. Its fields need the
// inbox's lock.
type feed struct {
	in      *inbox
	session performatives.SessionID // "" for the shared consumer
	readers int
	held    int                // messages that it has brought and nobody has acknowledged
	pulling context.CancelFunc // stops pulling; nil while nobody does
	stopped chan struct{}      // closed when pulling has stopped
	idle    *time.Timer        // stops pulling some time after the last reader left
	failed  error              // why nothing can be pulled
	limit   int                // unacknowledged messages that the broker hands out; 0 is no limit
	ackWait time.Duration

	gaps gaps // of the goroutine that pulls
}

const (
	ahead      = 64               // messages to have at hand for those who read
	pullFor    = 30 * time.Second // one pull; an import's reply is good for 2 min
	pullBeat   = 5 * time.Second  // a pull without a sign of life twice as long is made again
	idleFor    = 2 * time.Second  // between one loop and the next
	drainedFor = 2 * time.Second  // to get what is under way
)

func newInbox(c *Client) *inbox {
	return &inbox{client: c, mailbox: newMailbox(), feeds: map[performatives.SessionID]*feed{}}
}

// enter lets a reader in, and starts pulling.
func (in *inbox) enter(r *reader) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return ErrClosed
	}
	of := r.session
	if in.client.link.http != nil {
		of = ""
	}
	f := in.feeds[of]
	if f == nil {
		f = &feed{in: in, session: of}
		in.feeds[of] = f
	}
	f.readers++
	r.feed, in.readers[r] = f, true
	in.wake()
	if f.idle != nil {
		f.idle.Stop()
	}
	if f.pulling == nil {
		f.start()
	}
	return nil
}

func (f *feed) start() {
	ctx, cancel := context.WithCancel(context.Background())
	f.pulling, f.stopped, f.failed = cancel, make(chan struct{}), nil
	f.gaps = gaps{}
	go f.run(ctx, f.stopped)
}

func (in *inbox) leave(r *reader) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mailbox.leave(r)
	f := r.feed
	if f.readers--; f.readers > 0 || f.pulling == nil {
		return
	}
	if f.idle != nil {
		f.idle.Stop()
	}
	f.idle = time.AfterFunc(idleFor, func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		if f.readers == 0 && f.pulling != nil {
			f.pulling()
		}
	})
}

// close ends all loops and gives back what is not acknowledged.
func (in *inbox) close() {
	in.mu.Lock()
	in.closed = true
	in.wake()
	var stopping []chan struct{}
	for _, f := range in.feeds {
		if f.idle != nil {
			f.idle.Stop()
		}
		if f.pulling == nil {
			f.giveBack()
			continue
		}
		f.pulling()
		stopping = append(stopping, f.stopped)
	}
	in.mu.Unlock()
	for _, stopped := range stopping {
		<-stopped
	}
}

// run pulls until it is stopped or cannot go on.
func (f *feed) run(ctx context.Context, stopped chan struct{}) {
	defer close(stopped)
	err := f.pull(ctx)
	in := f.in
	in.mu.Lock()
	defer in.mu.Unlock()
	f.pulling = nil
	switch {
	case ctx.Err() == nil:
		f.failed = err
	case f.readers > 0 && !in.closed: // somebody came while it stopped
		f.start()
	default:
		f.giveBack()
		delete(in.feeds, f.session)
	}
	in.wake()
}

// giveBack lets come again, at once and anywhere, what is not acknowledged.
func (f *feed) giveBack() {
	if f.in.client.link.http != nil {
		return // it stays in the mailbox
	}
	for _, raw := range f.in.empty(f) {
		if err := raw.Nak(); err != nil {
			f.in.client.link.log.Debug("not given back", slog.Any("error", err))
		}
	}
}

// pull fills the mailbox until the context ends or there is nothing to pull from.
func (f *feed) pull(ctx context.Context) error {
	in := f.in
	if in.client.link.http != nil {
		return f.follow(ctx)
	}
	for attempt := 0; ; attempt++ {
		consumer, err := f.consumer(ctx)
		if err != nil {
			return err
		}
		in.mu.Lock()
		config := consumer.CachedInfo().Config
		f.limit, f.ackWait = max(0, config.MaxAckPending), config.AckWait
		in.mu.Unlock()
		pulls, err := consumer.Messages(jetstream.PullMaxMessages(ahead), jetstream.PullExpiry(pullFor),
			jetstream.PullHeartbeat(pullBeat), jetstream.WithMessagesErrOnMissingHeartbeat(false))
		if err == nil {
			err = f.receive(ctx, pulls)
			f.drain(consumer, pulls)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, jetstream.ErrConnectionClosed) {
			return ErrClosed
		}
		in.client.link.log.Warn("inbox", slog.Any("error", err))
		if !wait(ctx, pause(attempt)) {
			return ctx.Err()
		}
	}
}

// receive puts into the mailbox what comes, as long as there is room.
func (f *feed) receive(ctx context.Context, pulls jetstream.MessagesContext) error {
	for {
		if err := f.room(ctx); err != nil {
			return err
		}
		raw, err := pulls.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		f.deliver(ctx, raw)
	}
}

// room waits until there are readers and not enough for them to read.
func (f *feed) room(ctx context.Context) error {
	for {
		f.in.mu.Lock()
		enough := f.readers == 0 || f.in.wanted(f) >= ahead
		changed := f.in.changed
		f.in.mu.Unlock()
		if !enough {
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drain takes in what is under way already. The server finds out that nobody
// waits any more when it is asked about the consumer; had it not, it would lose
// the order of what is given back while it looks for somebody to deliver to.
func (f *feed) drain(consumer jetstream.Consumer, pulls jetstream.MessagesContext) {
	link := f.in.client.link
	if !link.nc.IsConnected() {
		pulls.Stop()
		return
	}
	pulls.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), drainedFor)
	defer cancel()
	for {
		raw, err := pulls.Next(jetstream.NextContext(ctx))
		if err != nil {
			break
		}
		f.deliver(ctx, raw)
	}
	if _, err := consumer.Info(ctx); err != nil {
		link.log.Debug("inbox", slog.Any("error", err))
	}
}

// ack acknowledges a message, by the newest delivery of each feed.
func (in *inbox) ack(m *Message) error {
	in.mu.Lock()
	open, is := in.open[m.key()]
	done := in.done.has(m.key())
	var came []delivery
	if is {
		came = append(came, open.came...)
	}
	in.mu.Unlock()
	switch {
	case done:
		return nil
	case !is:
		return ErrGivenBack
	}
	for _, d := range came {
		if d.raw == nil {
			continue
		}
		if err := d.raw.Ack(); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			return err
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.acknowledged(open)
	return nil
}

// keep keeps a message from being delivered again while its reader works on it, until stop.
func (in *inbox) keep(m *Message) (stop func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	every := 10 * time.Second
	for _, f := range in.feeds {
		if f.ackWait > 0 {
			every = min(every, f.ackWait/3)
		}
	}
	var again *time.Timer
	again = time.AfterFunc(every, func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		for _, d := range m.came {
			if d.raw == nil {
				continue
			}
			if err := d.raw.InProgress(); err != nil {
				in.client.link.log.Debug("not kept", slog.Any("error", err))
			}
		}
		if in.open[m.key()] == m {
			again.Reset(every)
		}
	})
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		again.Stop()
	}
}

// accepted notes an act of our own that ended a session.
func (in *inbox) accepted(a api.Acceptance) {
	if !a.State.Over() {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.over.add(a.Session)
	in.wake()
}

// wait waits, or tells that the context ended first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
