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

const (
	ahead        = 64                    // messages to have at hand for those who read
	pullFor      = 10 * time.Second      // one pull; an import's reply is good for 2 min
	pullBeat     = 5 * time.Second       // a pull without a sign of life twice as long is made again
	idleFor      = 2 * time.Second       // between one loop and the next
	idleAtOthers = pullFor + time.Second // the same, where another server may lead the consumer
	drainedFor   = 2 * time.Second       // to get what is under way
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
		f = &feed{in: in, session: of, idleFor: idleFor, left: func() {}}
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

func (in *inbox) leave(r *reader) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mailbox.leave(r)
	f := r.feed
	if f.readers--; f.readers > 0 {
		return
	}
	f.left()
	if f.pulling == nil {
		return
	}
	if f.idle != nil {
		f.idle.Stop()
	}
	f.idle = time.AfterFunc(f.idleFor, func() {
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

// A keeper keeps a message from being delivered again while its reader works on it.
type keeper struct {
	in    *inbox
	m     *Message
	every time.Duration
	timer *time.Timer
	done  bool
}

// keep keeps a message until its keeper is stopped.
func (in *inbox) keep(m *Message) *keeper {
	in.mu.Lock()
	defer in.mu.Unlock()
	k := &keeper{in: in, m: m, every: 10 * time.Second}
	for _, f := range in.feeds {
		if f.ackWait > 0 {
			k.every = min(k.every, f.ackWait/3)
		}
	}
	k.timer = time.AfterFunc(k.every, k.again)
	return k
}

// again says that the message is in progress. Its timer may have fired just before stop.
func (k *keeper) again() {
	k.in.mu.Lock()
	defer k.in.mu.Unlock()
	if k.done {
		return
	}
	for _, d := range k.m.came {
		if d.raw == nil {
			continue
		}
		if err := d.raw.InProgress(); err != nil {
			k.in.client.link.log.Debug("not kept", slog.Any("error", err))
		}
	}
	if k.in.open[k.m.key()] == k.m {
		k.timer.Reset(k.every)
	}
}

// stop lets the message be delivered again.
func (k *keeper) stop() {
	k.in.mu.Lock()
	defer k.in.mu.Unlock()
	k.done = true
	k.timer.Stop()
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

// wait waits, or reports that the context ended first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
