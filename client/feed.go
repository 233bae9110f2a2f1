package client

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/performatives"
)

// A feed pulls from a consumer while somebody reads, and listens for a little while after. Its fields need the
// inbox's lock.
type feed struct {
	in      *inbox
	session performatives.SessionID // "" for the shared consumer
	readers int
	left    func()             // the last reader calls it when it leaves: it ends the wait for the next message
	held    int                // messages that it has brought and nobody has acknowledged
	pulling context.CancelFunc // stops pulling; nil while nobody does
	stopped chan struct{}      // closed when pulling has stopped
	idle    *time.Timer        // stops it some time after the last reader left
	idleFor time.Duration
	failed  error // why nothing can be pulled
	limit   int   // unacknowledged messages that the broker hands out; 0 is no limit
	ackWait time.Duration

	gaps gaps // of the goroutine that pulls
}

func (f *feed) start() {
	ctx, cancel := context.WithCancel(context.Background())
	f.pulling, f.stopped, f.failed = cancel, make(chan struct{}), nil
	f.gaps = gaps{}
	go f.run(ctx, f.stopped)
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
		if consumer.CachedInfo().Cluster != nil {
			// Its leader sees of a pull by way of another server only that this server is there: it would deliver
			// into one that is left, and again only after the ack wait.
			f.idleFor = idleAtOthers
		}
		in.mu.Unlock()
		pulls, err := consumer.Messages(jetstream.PullMaxMessages(ahead), jetstream.PullExpiry(pullFor),
			jetstream.PullHeartbeat(pullBeat), jetstream.WithMessagesErrOnMissingHeartbeat(false))
		lost := false
		if err == nil {
			connected, end := f.whileConnected(ctx)
			err = f.receive(connected, pulls)
			lost = connected.Err() != nil
			end()
			f.drain(consumer, pulls)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if lost { // with another inbox, or what the server still has of the old pulls takes what comes
			continue
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

// whileConnected returns a context that ends when the connection is lost.
func (f *feed) whileConnected(ctx context.Context) (connected context.Context, end func()) {
	nc := f.in.client.link.nc
	connected, cancel := context.WithCancel(ctx)
	status := nc.StatusChanged(nats.RECONNECTING)
	go func() {
		select {
		case <-status:
			cancel()
		case <-connected.Done():
		}
	}()
	return connected, func() {
		cancel()
		nc.RemoveStatusListener(status)
	}
}

// receive puts into the mailbox what comes, as long as there is room.
func (f *feed) receive(ctx context.Context, pulls jetstream.MessagesContext) error {
	for {
		reading, err := f.room(ctx)
		if err != nil {
			return err
		}
		raw, err := pulls.Next(jetstream.NextContext(reading)) // outside of which nothing more is pulled
		switch {
		case err == nil:
			f.deliver(ctx, raw)
		case reading.Err() == nil || ctx.Err() != nil:
			return err
		}
	}
}

// room waits until there are readers and not enough for them to read. The context that it returns ends when the
// last of them leaves.
func (f *feed) room(ctx context.Context) (reading context.Context, err error) {
	for {
		f.in.mu.Lock()
		enough := f.readers == 0 || f.in.wanted(f) >= ahead
		changed := f.in.changed
		if !enough {
			f.left() // frees what the wait for the last message used
			reading, f.left = context.WithCancel(ctx)
		}
		f.in.mu.Unlock()
		if !enough {
			return reading, ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// drain takes in what is under way already. The server finds out that nobody
// waits any more when it is asked about the consumer; had it not, it would lose
// the order of what is given back while it looks for somebody to deliver to.
func (f *feed) drain(consumer jetstream.Consumer, pulls jetstream.MessagesContext) {
	link := f.in.client.link
	ctx, cancel := context.WithTimeout(context.Background(), drainedFor)
	defer cancel()
	for !link.nc.IsConnected() {
		raw, err := pulls.Next(jetstream.NextMaxWait(time.Millisecond))
		if err != nil {
			pulls.Stop()
			return
		}
		f.deliver(ctx, raw)
	}
	pulls.Drain()
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
