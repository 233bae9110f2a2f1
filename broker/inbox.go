package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/internal/telemetry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/store"
)

// A delivery is an accepted entry on its way to the inboxes.
type delivery struct {
	sequence uint64 // in the session
	position uint64 // in the stream
	entry    archive.Entry
	owner    performatives.Organisation // whose sealed parts are delivered with it
	to       []performatives.Agent
	again    bool // it may have been delivered before
	trace    *telemetry.Onward
}

// ownerOf is the organisation whose sealed parts a message may have.
func ownerOf(m *performatives.Message, stamp performatives.Stamp) performatives.Organisation {
	return archive.OwnerOf(transcript.Entry{Message: m, Stamp: stamp})
}

// audience is who receives the last entry: also the humans who are asked to decide and have not acted,
// as the registry has them now.
func (b *Broker) audience(s *session.State) []performatives.Agent {
	to := s.Audience()
	for org := range s.Deciding() {
		for _, m := range b.parts.Registry.Deciders(org) {
			if s.Asks(m) && !slices.Contains(to, m.Agent) {
				to = append(to, m.Agent)
			}
		}
	}
	return to
}

// A place is the end of a principal's inbox of one session.
type place struct {
	position uint64 // of its last message in the inbox stream; 0 for none
	sequence int64  // of the last entry that it holds; -1 for none
}

// emptyInboxes are those of a session that has just been opened.
func emptyInboxes(participants []performatives.Agent) map[performatives.Agent]place {
	ends := make(map[performatives.Agent]place, len(participants))
	for _, a := range participants {
		ends[a] = place{0, -1}
	}
	return ends
}

// sideEffects are applied in this order. One that fails does not hold up the others.
var sideEffects = [...]struct {
	derive func(*Broker, context.Context, *cachedSession) error
	then   failpoint
	name   string
}{
	{(*Broker).reconcileApprovals, reconciled, "approvals"}, {(*Broker).deliver, delivered, "inboxes"}, {(*Broker).tellPeople, told, "people"},
	{(*Broker).appendLeaves, logged, "log"}, {(*Broker).arm, timed, "timer"}, {(*Broker).writeRow, listed, "row"},
}

// SideEffects names them.
func SideEffects() []string {
	names := make([]string, len(sideEffects))
	for i, effect := range sideEffects {
		names[i] = effect.name
	}
	return names
}

// postponable is the first of them that may lag.
const postponable = 4

// applySideEffects makes everything that is derived from a session agree with it: the
// escalation item, inboxes, notices to people, the public log, and then, or a little later, the timer and
// the session list. What fails is tried again; entries count as applied only when all of it is
// done.
func (b *Broker) applySideEffects(ctx context.Context, l *cachedSession) {
	var failed error
	begun := time.Now()
	for i, step := range sideEffects {
		if i == postponable && failed == nil && b.postpone(l) {
			l.attempts = 0
			return
		}
		if err := step.derive(b, ctx, l); err != nil {
			failed = errors.Join(failed, err)
			b.o.Metrics.Failed(step.name)
			continue
		}
		b.reaches(step.then)
	}
	if failed == nil {
		for _, d := range l.unapplied {
			b.parts.Members.Applied(d.position)
		}
		l.unapplied, l.lagsUntil, l.attempts = nil, time.Time{}, 0
		b.recovered(l)
		return
	}
	if ctx.Err() != nil {
		return // a peer, or the next start, recovers it
	}
	l.attempts++
	b.fails(l, begun, failed)
	b.later(l, min(time.Duration(l.attempts)*100*time.Millisecond, maxRetryPause))
}

// later schedules one retry of the side effects, for however many reasons.
func (b *Broker) later(l *cachedSession, wait time.Duration) {
	if !l.retrying {
		l.retrying = true
		b.after(wait, l.id, (*Broker).retrySideEffects)
	}
}

// after has a session do a piece of work after a delay.
func (b *Broker) after(delay time.Duration, id performatives.SessionID, do func(*Broker, context.Context, *cachedSession)) {
	time.AfterFunc(delay, func() {
		work := func(ctx context.Context, l *cachedSession) { do(b, ctx, l) }
		if !b.sessions.run(id, work) && b.parts.Work.Context().Err() == nil {
			b.after(time.Second, id, do)
		}
	})
}

func (b *Broker) retrySideEffects(ctx context.Context, l *cachedSession) {
	l.retrying = false
	err := b.renew(ctx, l)
	if err == nil && l.indeterminate != nil {
		err = b.catchUp(ctx, l)
	}
	if err != nil {
		b.trouble("load", l.id, err) //nolint:errcheck // it logs; there is nobody to answer
		b.later(l, time.Second)
		return
	}
	l.inboxes = nil // another broker may have written to them
	b.applySideEffects(ctx, l)
}

// deliver writes copies of unapplied entries to the inboxes, each entry after the one before
// it, once for each inbox. If another broker was faster, or a copy was stored and not
// acknowledged, it reads the ends of the inboxes again and goes on from there.
func (b *Broker) deliver(ctx context.Context, l *cachedSession) (err error) {
	for range maxRaces {
		if err = b.deliverAll(ctx, l, l.unapplied); err == nil {
			for _, d := range l.unapplied {
				b.o.Metrics.Delivered(d.position)
				d.trace.Delivered()
			}
			return nil
		}
		l.inboxes = nil
		for i := range l.unapplied {
			l.unapplied[i].again = true
		}
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return err
}

// deliverAll writes what it can, in order: an inbox whose copy fails gets no later one, and
// holds up no other inbox. It returns one of the errors, a conflict before others.
func (b *Broker) deliverAll(ctx context.Context, l *cachedSession, all []delivery) (err error) {
	if l.inboxes == nil {
		l.inboxes = map[performatives.Agent]place{}
	}
	failed := map[performatives.Agent]error{}
	for _, d := range all {
		b.deliverOne(ctx, l, d, failed)
	}
	for _, why := range failed {
		if err == nil || errors.Is(why, store.ErrConflict) {
			err = why
		}
	}
	return err
}

func (b *Broker) deliverOne(ctx context.Context, l *cachedSession, d delivery, failed map[performatives.Agent]error) {
	type copyTo struct {
		agent performatives.Agent
		sent  *store.Pending
	}
	var copies []copyTo
	fail := func(a performatives.Agent, err error) { failed[a] = fmt.Errorf("inbox of %s: %w", a, err) }
	for _, a := range d.to {
		if failed[a] != nil {
			continue
		}
		at, err := b.inboxEnd(ctx, l, a, d)
		if err != nil {
			fail(a, err)
			continue
		}
		if at.sequence >= int64(d.sequence) { //nolint:gosec // far below 2^63
			continue
		}
		header := store.Header{api.SequenceHeader: {strconv.FormatUint(d.sequence, 10)}}
		if d.entry.Sealed != "" && a.Organisation() == d.owner {
			header.Set(api.SealedHeader, d.entry.Sealed)
		}
		d.trace.Header(header)
		copied, err := b.parts.Store.Send(api.InboxStream, store.Message{Subject: api.Inbox(a, l.id), Data: d.entry.Data, Header: header}, at.position)
		if err != nil {
			fail(a, err)
			continue
		}
		copies = append(copies, copyTo{a, copied})
		b.reaches(delivering)
	}
	for _, c := range copies {
		position, err := c.sent.Stored()
		if err != nil {
			fail(c.agent, err)
			continue
		}
		l.inboxes[c.agent] = place{position, int64(d.sequence)} //nolint:gosec // far below 2^63
	}
}

// inboxEnd finds the end of an inbox. Before the first entry of a session is delivered,
// inboxes are empty. Copies expire: if the inbox of an old entry is empty, its copy was
// delivered and has expired.
func (b *Broker) inboxEnd(ctx context.Context, l *cachedSession, a performatives.Agent, d delivery) (place, error) {
	if at, known := l.inboxes[a]; known {
		return at, nil
	}
	at := place{0, -1}
	if d.sequence > 0 || d.again {
		m, err := b.parts.Store.Last(ctx, api.InboxStream, api.Inbox(a, l.id))
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

// announce publishes events for monitors; nothing depends on them.
func (b *Broker) announce(l *cachedSession, m *performatives.Message, before session.Phase, stamp performatives.Stamp) {
	event := map[string]any{
		"sessionId": l.id, "state": l.state.Phase, "sequenceNumber": stamp.Sequence,
		"performative": m.Performative, "sender": m.Sender, "at": stamp.Receipt.AcceptedAt,
	}
	for _, item := range l.state.Last.Disputes {
		if item.Open() {
			event["escalationId"], event["disputeId"] = item.ID, item.Dispute
			b.tell(l.id, "escalated", event)
		}
	}
	if l.state.Phase == before && !m.Sender.IsBroker() {
		return
	}
	if l.state.Phase != before {
		event["from"] = before
		b.tell(l.id, "state", event)
	}
	switch after := l.state.Phase; {
	case m.Sender.IsBroker():
		event["reason"] = l.state.Closing
		if inform, is := m.Body.(*performatives.InformBody); is { // the session goes on
			happened, _ := inform.Event()
			event["reason"], event["commitmentId"], event["obligation"], event["disputeId"] = happened.Event, happened.CommitmentID, happened.Obligation, happened.DisputeID
		}
		b.tell(l.id, "timeout", event)
	case after == session.Escalated && before != after:
		for _, item := range l.state.NewestEscalations() {
			event["escalationId"] = item.ID
			b.tell(l.id, "escalated", event)
		}
	case before == session.Escalated && !after.Over():
		b.tell(l.id, "resumed", event)
	}
	if l.state.Phase.Over() && !before.Over() {
		event["reason"] = l.state.Closing
		b.tell(l.id, "closed", event)
	}
}

// tellStandbys puts the entry since which a turn waits into the inbox of the standby that may
// take it by now, once. The session's timer fires then.
func (b *Broker) tellStandbys(ctx context.Context, l *cachedSession) error {
	_, overdue := l.state.Waiting(b.clock(l))
	var told []delivery
	for _, w := range overdue {
		if n, was := l.stoodIn[w.Standby]; was && n == w.Sequence { // 0 is the invitation
			continue
		}
		e, err := b.parts.Store.At(ctx, api.SessionsStream, l.sequences[w.Sequence])
		if err != nil {
			return err
		}
		if e == nil {
			return archive.ErrMoved
		}
		stored := archive.EntryOf(*e)
		read, err := stored.Read()
		if err != nil {
			return err
		}
		delete(l.inboxes, w.Standby) // another broker may have told it
		told = append(told, delivery{sequence: w.Sequence, entry: stored, owner: archive.OwnerOf(read), to: []performatives.Agent{w.Standby}, again: true})
	}
	if err := b.deliverAll(ctx, l, told); err != nil || len(told) == 0 {
		return err
	}
	l.stoodIn = map[performatives.Agent]uint64{}
	for _, w := range overdue {
		l.stoodIn[w.Standby] = w.Sequence
	}
	return nil
}
