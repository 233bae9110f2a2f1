package client

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/parley-asp/parley/performatives"
)

// ErrSessionOver is for waiting for a message of a session that has ended.
var ErrSessionOver = errors.New("client: the session is over")

// ErrBacklog ends a loop that could not go on: as many messages as the broker
// hands out are not acknowledged (1,000 by default). Acknowledge them, and range
// over [Client.Messages] where only single sessions are read.
var ErrBacklog = errors.New("client: too many messages are not acknowledged")

// Messages is the inbox: what the others say, in every session but those that a
// loop over [Session.Messages] reads. It waits for more until the context ends,
// and then yields the context's error.
//
// Acknowledge a message with [Message.Ack] when it is dealt with. Breaking the
// loop is fine at any time: what was not acknowledged comes again in the next
// loop, here or, once the client is closed or has not read for 2 s, anywhere.
// Within one loop a message comes once. Several loops share what comes.
//
// An error comes with no message. One about a single entry, which cannot be
// read, does not end the loop; any other does.
func (c *Client) Messages(ctx context.Context) iter.Seq2[*Message, error] {
	return c.inbox.read(ctx, &reader{})
}

// Messages is what the others say in this session, as [Client.Messages], and by a
// consumer of its own, so that no other session's reader takes any of it. It ends
// after the entry that ends the session, or with an act of this client that does.
// Of a session that was over, and read to its end by another process in the last
// 10 minutes, nothing comes and the loop waits. Where the principal reads 32
// sessions already, or may not use session consumers, it reads the shared inbox.
func (s *Session) Messages(ctx context.Context) iter.Seq2[*Message, error] {
	return s.client.inbox.read(ctx, &reader{session: s.id})
}

// Await waits for the first message that says one of these acts, or anything if
// none is given, acknowledges and returns it. Other messages stay for later. It
// is for agents that follow a script: where a crash must not lose a message,
// range over Messages.
func (c *Client) Await(ctx context.Context, acts ...performatives.Performative) (*Message, error) {
	return c.inbox.await(ctx, &reader{acts: acts})
}

// Await waits for the first message of the session that says one of these acts,
// as [Client.Await]. The error is [ErrSessionOver] where none can come any more.
func (s *Session) Await(ctx context.Context, acts ...performatives.Performative) (*Message, error) {
	return s.client.inbox.await(ctx, &reader{session: s.id, acts: acts})
}

func (in *inbox) await(ctx context.Context, r *reader) (*Message, error) {
	for m, err := range in.read(ctx, r) {
		if err != nil {
			return nil, err
		}
		return m, m.Ack()
	}
	return nil, fmt.Errorf("%w: %s", ErrSessionOver, r.session)
}

// read is a loop.
func (in *inbox) read(ctx context.Context, r *reader) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		if err := in.enter(r); err != nil {
			yield(nil, err)
			return
		}
		defer in.leave(r)
		for {
			m, err := in.next(ctx, r)
			if errors.Is(err, ErrSessionOver) {
				return
			}
			_, goesOn := errors.AsType[*unreadable](err)
			var kept *keeper
			if m != nil {
				kept = in.keep(m)
			}
			more := yield(m, err)
			if kept != nil {
				kept.stop()
			}
			if !more || err != nil && !goesOn {
				return
			}
		}
	}
}

// next waits for the next message for a reader.
func (in *inbox) next(ctx context.Context, r *reader) (*Message, error) {
	for {
		in.mu.Lock()
		m, err := in.look(r)
		changed := in.changed
		in.mu.Unlock()
		if m != nil || err != nil {
			return m, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// look is what there is for a reader now, both nil for nothing.
func (in *inbox) look(r *reader) (*Message, error) {
	if len(in.faults) > 0 {
		err := in.faults[0]
		in.faults = in.faults[1:]
		return nil, err
	}
	if in.closed {
		return nil, ErrClosed
	}
	if m := in.take(r); m != nil {
		in.wake() // there is room
		return m, nil
	}
	switch {
	case in.ended(r):
		return nil, ErrSessionOver
	case r.feed.failed != nil:
		return nil, r.feed.failed
	case r.feed.limit > 0 && r.feed.held >= r.feed.limit:
		return nil, ErrBacklog
	}
	return nil, nil
}

// unreadable is a delivery that is no entry.
type unreadable struct{ err error }

func (u *unreadable) Error() string {
	return "client: a message of the inbox cannot be read: " + u.err.Error()
}
func (u *unreadable) Unwrap() error { return u.err }
