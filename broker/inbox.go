package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// A delivery is an accepted entry on its way to the inboxes.
type delivery struct {
	sequence uint64 // in the session
	position uint64 // in the stream
	entry    []byte
	to       []performatives.Agent
	again    bool // it may have been delivered before
}

// A place is where a principal's inbox of one session stands.
type place struct {
	position uint64 // of its last message in the inbox stream; 0 for none
	sequence int64  // of the last entry that it holds; -1 for none
}

// settling are the steps of settle.
var settling = [...]struct {
	derive func(*Broker, context.Context, *live) error
	then   failpoint
}{{(*Broker).reconcileApprovals, shown}, {(*Broker).deliver, delivered}, {(*Broker).arm, timed}, {(*Broker).writeRow, listed}}

// settle makes everything that is derived from a session agree with it:
// inboxes, the timer, the session list, the escalation item. What fails is tried
// again; entries are noted as settled only when all of it is done.
func (b *Broker) settle(ctx context.Context, l *live) {
	var err error
	for _, step := range settling {
		if err = step.derive(b, ctx, l); err != nil {
			break
		}
		b.reaches(step.then)
	}
	if err == nil {
		for _, d := range l.undelivered {
			b.cluster.Applied(d.position)
		}
		l.undelivered, l.attempts = nil, 0
		return
	}
	if ctx.Err() != nil {
		return // the next broker takes over
	}
	l.attempts++
	b.Log.Warn("delivery goes on later", zap.String("session", string(l.id)), zap.Int("attempt", l.attempts), zap.Error(err))
	b.later(l, min(time.Duration(l.attempts)*100*time.Millisecond, 5*time.Second))
}

// later settles a session again after a while, once for however many reasons.
func (b *Broker) later(l *live, wait time.Duration) {
	if !l.retrying {
		l.retrying = true
		b.retry(l.id, wait)
	}
}

func (b *Broker) retry(id performatives.SessionID, wait time.Duration) {
	time.AfterFunc(wait, func() {
		if !b.sessions.run(id, b.resettle) && b.work.Context().Err() == nil {
			b.retry(id, time.Second)
		}
	})
}

func (b *Broker) resettle(ctx context.Context, l *live) {
	l.retrying = false
	err := b.load(ctx, l)
	if err == nil && l.unresolved != nil {
		err = b.catchUp(ctx, l)
	}
	if err != nil {
		b.trouble("load", l.id, err) //nolint:errcheck // it logs; there is nobody to answer
		b.later(l, time.Second)
		return
	}
	l.inboxes = nil // another broker may have written to them
	b.settle(ctx, l)
}

// deliver writes the undelivered entries to the inboxes, each entry after the
// one before it, every inbox once. Where another broker was faster, it looks
// where the inboxes stand now, and goes on from there.
func (b *Broker) deliver(ctx context.Context, l *live) (err error) {
	for range maxRaces {
		if err = b.deliverAll(ctx, l); err == nil {
			return nil
		}
		l.inboxes = nil
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return err
}

func (b *Broker) deliverAll(ctx context.Context, l *live) error {
	if l.inboxes == nil {
		l.inboxes = map[performatives.Agent]place{}
	}
	for _, d := range l.undelivered {
		if err := b.deliverOne(ctx, l, d); err != nil {
			return err
		}
	}
	return nil
}

func (b *Broker) deliverOne(ctx context.Context, l *live, d delivery) error {
	type copyTo struct {
		agent performatives.Agent
		sent  *store.Pending
	}
	var copies []copyTo
	for _, a := range d.to {
		at, err := b.placeOf(ctx, l, a, d)
		if err != nil {
			return err
		}
		if at.sequence >= int64(d.sequence) { //nolint:gosec // far below 2^63
			continue
		}
		copied, err := b.store.Send(api.InboxStream, store.Message{
			Subject: api.Inbox(a, l.id), Data: d.entry,
			Header: store.Header{api.SequenceHeader: {strconv.FormatUint(d.sequence, 10)}},
		}, at.position)
		if err != nil {
			return err
		}
		copies = append(copies, copyTo{a, copied})
		b.reaches(delivering)
	}
	for _, c := range copies {
		position, err := c.sent.Stored()
		if err != nil {
			return fmt.Errorf("inbox of %s: %w", c.agent, err)
		}
		l.inboxes[c.agent] = place{position, int64(d.sequence)} //nolint:gosec // far below 2^63
	}
	return nil
}

// placeOf finds where an inbox stands. Of an entry that this broker has just
// made first, nothing can be there yet. Copies expire: an old entry whose
// inbox is empty was delivered in its time.
func (b *Broker) placeOf(ctx context.Context, l *live, a performatives.Agent, d delivery) (place, error) {
	if at, known := l.inboxes[a]; known {
		return at, nil
	}
	at := place{0, -1}
	if d.sequence > 0 || d.again {
		m, err := b.store.Last(ctx, api.InboxStream, api.Inbox(a, l.id))
		if err != nil {
			return at, err
		}
		if m != nil {
			n, err := strconv.ParseInt(m.Header.Get(api.SequenceHeader), 10, 64)
			if err != nil {
				return at, err
			}
			at = place{m.Sequence, n}
		}
	}
	l.inboxes[a] = at
	return at, nil
}

// announce tells monitors what happened; nothing depends on it.
func (b *Broker) announce(l *live, m *performatives.Message, before session.Phase, stamp performatives.Stamp) {
	if l.state.Phase == before && !m.Sender.IsBroker() {
		return
	}
	event := map[string]any{
		"sessionId": l.id, "state": l.state.Phase, "sequenceNumber": stamp.Sequence,
		"performative": m.Performative, "sender": m.Sender, "at": stamp.Receipt.AcceptedAt,
	}
	if l.state.Phase != before {
		event["from"] = before
		b.tell(l.id, "state", event)
	}
	switch after := l.state.Phase; {
	case m.Sender.IsBroker():
		event["reason"] = l.state.Closing
		b.tell(l.id, "timeout", event)
	case after == session.Escalated && before != after:
		event["escalationId"] = l.state.Escalation().ID
		b.tell(l.id, "escalated", event)
	case before == session.Escalated && !after.Over():
		b.tell(l.id, "resumed", event)
	}
	if l.state.Phase.Over() && !before.Over() {
		event["reason"] = l.state.Closing
		b.tell(l.id, "closed", event)
	}
}
