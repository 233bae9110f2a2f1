package broker

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/cluster"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Timers are scheduled messages of the server: durable, one for each session,
// for its next deadline. A timer is a hint: State decides whether a deadline has passed, so a
// timer that fires early, late or twice does no harm.
type timers struct {
	b    *Broker
	stop func(context.Context) // nil before they are open

	mu   sync.Mutex
	held map[uint64]store.Delivery // those that fired and are not done, by sequence
}

// close lets the timers that fired come to their end, unless the server is gone.
func (t *timers) close(ctx context.Context) {
	if t.stop != nil {
		t.stop(ctx)
	}
}

const (
	timerAt       = "asp.timer.at."
	timerDue      = "asp.timer.due."
	timerConsumer = "brokers"
)

// A timer that fired is delivered to one broker, which reports progress until it is done. If
// that one is dead or stopped, another one gets the timer once the first may be suspected. A
// broker that does not pull gets no more. After an outage, many have fired: the brokers get
// so many at a time.
const (
	timerAgain    = cluster.SuspectAfter
	timerProgress = timerAgain / 3
	timerPull     = 2 * time.Second
	timersAtOnce  = 256
)

// openTimers consumes timers that fired; all brokers share them.
func (b *Broker) openTimers(ctx context.Context) error {
	b.timers.b, b.timers.held = b, map[uint64]store.Delivery{}
	queue, err := b.store.Queue(ctx, store.QueueConfig{
		Stream: api.TimersStream, Name: timerConsumer, Subject: timerDue + "*", AckWait: timerAgain, MaxAckPending: timersAtOnce,
	})
	if err != nil {
		return err
	}
	if b.timers.stop, err = queue.Consume(timerPull, timersAtOnce, b.timers.due); err == nil {
		b.work.Go(b.timers.reportProgress)
	}
	return err
}

// reportProgress keeps the timers that are held from being delivered again.
func (t *timers) reportProgress(ctx context.Context) {
	for background.Pause(ctx, timerProgress) == nil {
		t.mu.Lock()
		held := slices.Collect(maps.Values(t.held))
		t.mu.Unlock()
		for _, m := range held {
			if err := m.Progress(); err != nil {
				t.b.Log.Debug("progress of a timer not reported", zap.Error(err))
			}
		}
	}
}

// hold notes a timer that fired; false means that it is held already, and comes again.
func (t *timers) hold(m store.Delivery) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, again := t.held[m.Sequence]
	t.held[m.Sequence] = m // the newest delivery is the one to acknowledge
	return !again
}

// release ends the work on a timer, and returns its newest delivery.
func (t *timers) release(m store.Delivery) store.Delivery {
	t.mu.Lock()
	defer t.mu.Unlock()
	newest := t.held[m.Sequence]
	delete(t.held, m.Sequence)
	return newest
}

// due looks at a session whose timer fired.
func (t *timers) due(m store.Delivery) {
	if !t.hold(m) {
		return
	}
	id, err := performatives.ParseSessionID(strings.TrimPrefix(m.Subject, timerDue))
	if err != nil {
		t.done(m)
		return
	}
	if !t.b.sessions.run(id, func(ctx context.Context, l *cachedSession) {
		if err := t.b.atDeadline(ctx, l); err != nil {
			t.b.trouble("timer", id, err) //nolint:errcheck // it logs; the timer comes again
			t.later(m)
			return
		}
		t.done(m)
	}) {
		t.later(m)
	}
}

func (t *timers) done(m store.Delivery) {
	if err := t.release(m).Ack(); err != nil {
		t.b.Log.Debug("timer not acknowledged", zap.Error(err))
	}
}

func (t *timers) later(m store.Delivery) {
	if err := t.release(m).Later(time.Second); err != nil {
		t.b.Log.Debug("timer not returned", zap.Error(err))
	}
}

// atDeadline appends what the clock has ended and sets the next timer.
func (b *Broker) atDeadline(ctx context.Context, l *cachedSession) error {
	if err := b.load(ctx, l); err != nil {
		return err
	}
	if _, err := b.current(ctx, l); err != nil {
		return err
	}
	if l.state.Phase == session.Idle {
		return nil
	}
	b.tellExpired(l)
	if err := b.tellStandbys(ctx, l); err != nil {
		return err
	}
	l.armed = time.Time{} // it fired
	if err := b.enterDeadlines(ctx, l); err != nil {
		if _, readErr := b.current(ctx, l); readErr != nil {
			return readErr
		}
		return err
	}
	b.applySideEffects(ctx, l)
	return nil
}

// enterDeadlines appends the broker's CLOSE for deadlines that have passed.
func (b *Broker) enterDeadlines(ctx context.Context, l *cachedSession) error {
	for {
		at := b.clock(l)
		deadline, passed := l.state.Ending(at)
		if !passed {
			return nil
		}
		m, err := b.closing(l.id, deadline, at)
		if err != nil {
			return err
		}
		if err := b.restore(ctx, l, m); err != nil {
			return err
		}
		next, err := session.Step(l.state, session.Event{Message: m, At: at, Broker: b.Signer.Key()})
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
	}
}

// closing is the broker's own CLOSE for a deadline (PROTOCOL.md §3).
func (b *Broker) closing(id performatives.SessionID, d session.Deadline, at time.Time) (*performatives.Message, error) {
	message, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	envelope, err := performatives.Draft{
		ID: performatives.MessageID(message.String()), Session: id, Timestamp: at,
		Sender: performatives.BrokerAgent(b.Signer.Key()),
		Body:   &performatives.CloseBody{Outcome: performatives.FailedEnd, Reason: d.Code, Summary: deadlineSummary[d.Code]},
	}.Envelope(b.Signer)
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
}

// tellExpired publishes which offer has just expired; the session goes on.
func (b *Broker) tellExpired(l *cachedSession) {
	for _, d := range l.state.Deadlines(l.armed) {
		if !d.Ends && !l.armed.IsZero() && !l.armed.Before(d.At) {
			b.tell(l.id, "timeout", map[string]any{
				"sessionId": l.id, "state": l.state.Phase, "reason": d.Code, "referenceId": d.Ref,
				"at": d.At.UTC().Format(time.RFC3339Nano),
			})
		}
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
		return b.store.Purge(ctx, api.TimersStream, timerAt+string(l.id))
	}
	if err := b.tellStandbys(ctx, l); err != nil { // a turn may be theirs before a timer is set
		return err
	}
	next, unset := b.nextTimer(l)
	if !unset {
		return nil
	}
	l.unwritten = false
	if _, err := b.store.Put(ctx, store.Message{
		Subject: timerAt + string(l.id),
		Header: store.Header{
			store.ScheduleHeader:       {"@at " + next.UTC().Format(time.RFC3339Nano)},
			store.ScheduleTargetHeader: {timerDue + string(l.id)},
		},
	}); err != nil {
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
	next, some := l.state.NextDeadline(now)
	if due, more := b.approvals.NextDue(l.state, now); more && (!some || due.Before(next)) {
		next, some = due, true
	}
	return next, some && (!l.armed.After(now) || next.Before(l.armed))
}
