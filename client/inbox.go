package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
)

// An inbox pulls from the principal's durable consumer while somebody reads,
// and for a little while after.
type inbox struct {
	client *Client

	mu sync.Mutex
	mailbox
	pulling context.CancelFunc // stops pulling; nil while nobody does
	stopped chan struct{}      // closed when pulling has stopped
	idle    *time.Timer        // stops pulling some time after the last reader left
	closed  bool
	failed  error // why nothing can be pulled
	limit   int   // unacknowledged messages that the broker hands out; 0 is no limit

	gaps gaps
}

const (
	ahead      = 64               // messages to have at hand for those who read
	pullFor    = 30 * time.Second // one pull; an import's reply is good for 2 min
	pullBeat   = 5 * time.Second  // a pull without a sign of life twice as long is made again
	idleFor    = 2 * time.Second  // between one loop and the next
	drainedFor = 2 * time.Second  // to get what is under way
)

func newInbox(c *Client) *inbox { return &inbox{client: c, mailbox: newMailbox()} }

// enter lets a reader in, and starts pulling.
func (in *inbox) enter(r *reader) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return ErrClosed
	}
	in.readers[r] = true
	in.wake()
	if in.idle != nil {
		in.idle.Stop()
	}
	if in.pulling == nil {
		in.start()
	}
	return nil
}

func (in *inbox) start() {
	ctx, cancel := context.WithCancel(context.Background())
	in.pulling, in.stopped, in.failed = cancel, make(chan struct{}), nil
	in.gaps = gaps{}
	go in.run(ctx, in.stopped)
}

func (in *inbox) leave(r *reader) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mailbox.leave(r)
	if len(in.readers) > 0 || in.pulling == nil {
		return
	}
	if in.idle != nil {
		in.idle.Stop()
	}
	in.idle = time.AfterFunc(idleFor, func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		if len(in.readers) == 0 && in.pulling != nil {
			in.pulling()
		}
	})
}

// close ends all loops and gives back what is not acknowledged.
func (in *inbox) close() {
	in.mu.Lock()
	in.closed = true
	in.wake()
	if in.idle != nil {
		in.idle.Stop()
	}
	pulling, stopped := in.pulling, in.stopped
	if pulling == nil {
		in.giveBack()
	}
	in.mu.Unlock()
	if pulling != nil {
		pulling()
		<-stopped
	}
}

// run pulls until it is stopped or cannot go on.
func (in *inbox) run(ctx context.Context, stopped chan struct{}) {
	defer close(stopped)
	err := in.pull(ctx)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pulling = nil
	switch {
	case ctx.Err() == nil:
		in.failed = err
	case len(in.readers) > 0 && !in.closed: // somebody came while it stopped
		in.start()
	default:
		in.giveBack()
	}
	in.wake()
}

// giveBack lets come again, at once and anywhere, what is not acknowledged.
func (in *inbox) giveBack() {
	for _, raw := range in.empty() {
		if err := raw.Nak(); err != nil {
			in.client.link.log.Debug("not given back", slog.Any("error", err))
		}
	}
}

// pull fills the mailbox until the context ends or there is nothing to pull from.
func (in *inbox) pull(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		consumer, err := in.consumer(ctx)
		if err != nil {
			return err
		}
		in.mu.Lock()
		in.limit = max(0, consumer.CachedInfo().Config.MaxAckPending)
		in.mu.Unlock()
		pulls, err := consumer.Messages(jetstream.PullMaxMessages(ahead), jetstream.PullExpiry(pullFor),
			jetstream.PullHeartbeat(pullBeat), jetstream.WithMessagesErrOnMissingHeartbeat(false))
		if err == nil {
			err = in.receive(ctx, pulls)
			in.drain(consumer, pulls)
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
func (in *inbox) receive(ctx context.Context, pulls jetstream.MessagesContext) error {
	for {
		if err := in.room(ctx); err != nil {
			return err
		}
		raw, err := pulls.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		in.deliver(ctx, raw)
	}
}

// room waits until there are readers and not enough for them to read.
func (in *inbox) room(ctx context.Context) error {
	for {
		in.mu.Lock()
		enough := len(in.readers) == 0 || in.wanted() >= ahead
		changed := in.changed
		in.mu.Unlock()
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
func (in *inbox) drain(consumer jetstream.Consumer, pulls jetstream.MessagesContext) {
	if !in.client.link.nc.IsConnected() {
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
		in.deliver(ctx, raw)
	}
	if _, err := consumer.Info(ctx); err != nil {
		in.client.link.log.Debug("inbox", slog.Any("error", err))
	}
}

// ack acknowledges a message, by whichever delivery of it is the newest.
func (in *inbox) ack(m *Message) error {
	in.mu.Lock()
	open, is := in.open[m.key()]
	done := in.done.has(m.key())
	var raw jetstream.Msg
	if is {
		raw = open.raw
	}
	in.mu.Unlock()
	switch {
	case done:
		return nil
	case !is:
		return ErrGivenBack
	}
	if raw != nil {
		if err := raw.Ack(); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			return err
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.acknowledged(open)
	return nil
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
