package broker

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Due looks at a session whose timer was set for a time and fired.
func (b *Broker) Due(id performatives.SessionID, at time.Time, done func(error)) {
	if !b.sessions.run(id, func(ctx context.Context, l *cachedSession) {
		b.sessions.atDeadlines.Add(1)
		defer b.sessions.atDeadlines.Add(-1)
		yield := b.yielding(ctx, l)
		err := b.atDeadline(ctx, l, at, yield)
		if err != nil {
			b.trouble("timer", id, err) //nolint:errcheck // it logs; the timer comes again
		}
		yield()
		done(err)
	}) {
		done(session.Busy())
	}
}

// atDeadline appends what the clock has ended and sets the next timer.
func (b *Broker) atDeadline(ctx context.Context, l *cachedSession, at time.Time, yield func()) error {
	if err := b.load(ctx, l); err != nil {
		return err
	}
	if _, err := b.current(ctx, l); err != nil {
		return err
	}
	if l.state.Phase == session.Idle {
		return nil
	}
	l.looked = b.clock(l)
	b.tellLapsed(l, at)
	if err := b.tellStandbys(ctx, l); err != nil {
		return err
	}
	l.armed = time.Time{} // it fired
	if err := b.enterDeadlines(ctx, l, yield); err != nil {
		if _, readErr := b.current(ctx, l); readErr != nil {
			return readErr
		}
		return err
	}
	b.applySideEffects(ctx, l)
	return nil
}

// enterPassed enters the deadlines that have passed before a session is read: what the reader may say now is judged
// after them. Where nothing can be entered, the reader sees what there is, and the timer comes again.
func (b *Broker) enterPassed(ctx context.Context, l *cachedSession) error {
	_, passed := l.state.Passed(b.clock(l))
	if away := b.parts.Members.Isolated() || b.parts.Store.Broken() != nil; away || !passed {
		return nil
	}
	failed := b.enterDeadlines(ctx, l, func() {})
	if failed == nil {
		return nil
	}
	b.o.Log.Debug("a deadline is not entered before the session is read", zap.String("session", string(l.id)), zap.Error(failed))
	_, err := b.current(ctx, l)
	return err
}

// mostYielded bounds a pause where the work takes long because it waits for a store.
const mostYielded = 20 * time.Millisecond

// yielding is for work at a deadline. What it returns pauses while acts of other sessions are worked on, four times
// as long as the work took since the last pause; one session pauses after the other. So very many deadlines do not
// keep acts waiting (BenchmarkDue).
func (b *Broker) yielding(ctx context.Context, l *cachedSession) func() {
	began := time.Now()
	return func() {
		took := time.Since(began)
		b.sessions.yields.Lock()
		if b.sessions.othersAct(l) {
			background.Pause(ctx, min(4*took, mostYielded)) //nolint:errcheck // the work goes on
		}
		b.sessions.yields.Unlock()
		began = time.Now()
	}
}

// enterDeadlines appends what the broker says of deadlines that have passed: its CLOSE, or an event. It calls
// entered after each.
func (b *Broker) enterDeadlines(ctx context.Context, l *cachedSession, entered func()) error {
	for copied := true; ; {
		at := b.clock(l)
		deadline, passed := l.state.Passed(at)
		if !passed {
			return nil
		}
		if copied && len(l.unapplied) > 0 { // copies that fail are tried again with the other side effects
			copied = b.deliver(ctx, l) == nil
		}
		m, err := b.own(l.id, deadline, at)
		if err != nil {
			return err
		}
		if err := b.restore(ctx, l, m); err != nil {
			return err
		}
		next, err := session.Step(l.state, session.Event{Message: m, At: at, Broker: b.o.Signer.Key()})
		if err != nil {
			return err
		}
		act, err := b.seal(l, m, next, at)
		if err != nil {
			return err
		}
		if err := b.enter(ctx, l, m, act); err != nil {
			return err
		}
		l.sought = false
		entered()
	}
}

// own is the broker's own entry for a deadline (PROTOCOL.md §3).
func (b *Broker) own(id performatives.SessionID, d session.Deadline, at time.Time) (*performatives.Message, error) {
	message, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	envelope, err := performatives.Draft{
		ID: performatives.MessageID(message.String()), Session: id, Timestamp: at,
		Sender: performatives.BrokerAgent(b.o.Signer.Key()),
		Body:   d.Body(deadlineSummary[d.Code]),
	}.Envelope(b.o.Signer)
	if err != nil {
		return nil, err
	}
	m, err := performatives.Read(envelope)
	if err != nil {
		return nil, err
	}
	return m, m.DecodeBody()
}

// deadlineSummary is the same for everybody, so it tells no more than that.
var deadlineSummary = map[string]string{
	session.SessionTimeout:    "the session's time is over",
	session.InvitationTimeout: "the invitation was not answered in time",
	session.EscalationExpired: "no decision was made in time",
	session.ExecutionComplete: "nothing is due or disputed any more",
}

// tellLapsed publishes the deadlines that have passed since a time and end nothing; the session goes on.
func (b *Broker) tellLapsed(l *cachedSession, since time.Time) {
	if since.IsZero() {
		return
	}
	for _, d := range l.state.Lapsed(since, l.looked) {
		b.tell(l.id, "timeout", map[string]any{
			"sessionId": l.id, "state": l.state.Phase, "reason": d.Code, "referenceId": d.Ref,
			"at": d.At.UTC().Format(time.RFC3339Nano),
		})
	}
}

// arm sets the session's timer to its next deadline, if that is sooner than the timer that is
// set. A timer that fires too early is set again. The timer of a session that is over is
// purged: the server would keep it in memory, perhaps for weeks, only to have the transcript
// read once more.
func (b *Broker) arm(ctx context.Context, l *cachedSession) error {
	if l.state.Phase.Over() {
		if l.unwritten {
			return nil
		}
		return b.parts.Timers.Purge(ctx, l.id)
	}
	if err := b.tellStandbys(ctx, l); err != nil { // a turn may be theirs before a timer is set
		return err
	}
	next, unset := b.nextTimer(l)
	if !unset {
		return nil
	}
	l.unwritten = false
	if err := b.parts.Timers.Set(ctx, l.id, next); err != nil {
		return err
	}
	l.armed = next
	return nil
}

// nextTimer is when the session's timer has to fire; unset means that none is set so soon.
func (b *Broker) nextTimer(l *cachedSession) (next time.Time, unset bool) {
	if l.state.Phase.Over() {
		return next, false
	}
	now := b.clock(l)
	next, some := l.state.NextDeadline(l.lookedAt())
	if due, more := b.parts.Approvals.NextDue(l.state, now); more && (!some || due.Before(next)) {
		next, some = due, true
	}
	if at, more := b.nextNotice(l, now); more && (!some || at.Before(next)) {
		next, some = at, true
	}
	return next, some && (!l.armed.After(now) || next.Before(l.armed))
}

// lookedAt is up to when deadlines were looked at: the last entry, or a timer that fired since. Those that
// passed after it are still to be told, however long the entry took to be stored.
func (l *cachedSession) lookedAt() time.Time {
	if l.looked.After(l.state.Updated) {
		return l.looked
	}
	return l.state.Updated
}
