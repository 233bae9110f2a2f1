// Package timers wakes sessions at their deadlines. Timers are scheduled messages of the server: durable, one for
// each session, for its next deadline. A timer is a hint: State decides whether a deadline has passed, so a timer
// that fires early, late or twice does no harm.
package timers

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/cluster"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// Options say whom timers wake.
type Options struct {
	Store *store.Store
	// Due looks at a session whose timer was set for a time; after an error the timer comes again.
	Due  func(id performatives.SessionID, at time.Time, done func(error))
	Work *background.Group
	Log  *zap.Logger
}

// Timers are shared by all brokers; each that fires is delivered to one.
type Timers struct {
	Options
	stop func(context.Context) // nil before they are started

	mu      sync.Mutex
	held    map[uint64]store.Delivery // those that fired and are not done, by sequence
	waiting []fired                   // those of held that are not looked at yet, the oldest first
	looking int                       // how many are looked at
}

// fired is a timer that fired.
type fired struct {
	store.Delivery
	id performatives.SessionID
	at time.Time
}

const (
	timerAt       = "asp.timer.at."
	timerDue      = "asp.timer.due."
	timerConsumer = "brokers"
)

// Again is when a timer without progress is delivered again.
//
// A timer that fired is delivered to one broker, which reports progress until it is done. If
// that one is dead or stopped, another one gets the timer once the first may be suspected. A
// broker that does not pull gets no more. After an outage, many have fired: the brokers get
// so many at a time.
const (
	Again         = cluster.SuspectAfter
	timerProgress = Again / 3
	timerPull     = 2 * time.Second
	timersAtOnce  = 256
)

// lookedAtOnce is how many sessions a broker looks at together, in the order in which their timers fired. When very
// many fire, acts of other sessions wait for so many at most (BenchmarkDue).
const lookedAtOnce = 2

// New makes timers, which can be set from then on.
func New(o Options) *Timers { return &Timers{Options: o, held: map[uint64]store.Delivery{}} }

// Start consumes timers that fired.
func (t *Timers) Start(ctx context.Context) error {
	queue, err := t.Store.Queue(ctx, store.QueueConfig{
		Stream: api.TimersStream, Name: timerConsumer, Subject: timerDue + "*", AckWait: Again, MaxAckPending: timersAtOnce,
	})
	if err != nil {
		return err
	}
	if t.stop, err = queue.Consume(timerPull, timersAtOnce, t.due); err == nil {
		t.Work.Go(t.reportProgress)
	}
	return err
}

// Close lets the timers that fired come to their end, unless the server is gone.
func (t *Timers) Close(ctx context.Context) {
	if t.stop != nil {
		t.stop(ctx)
	}
}

// reportProgress keeps the timers that are held from being delivered again.
func (t *Timers) reportProgress(ctx context.Context) {
	for background.Pause(ctx, timerProgress) == nil {
		t.mu.Lock()
		held := slices.Collect(maps.Values(t.held))
		t.mu.Unlock()
		for _, m := range held {
			if err := m.Progress(); err != nil {
				t.Log.Debug("progress of a timer not reported", zap.Error(err))
			}
		}
	}
}

// hold notes a timer that fired; false means that it is held already, and comes again.
func (t *Timers) hold(m store.Delivery) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, again := t.held[m.Sequence]
	t.held[m.Sequence] = m // the newest delivery is the one to acknowledge
	return !again
}

// release ends the work on a timer, and returns its newest delivery.
func (t *Timers) release(m store.Delivery) store.Delivery {
	t.mu.Lock()
	defer t.mu.Unlock()
	newest := t.held[m.Sequence]
	delete(t.held, m.Sequence)
	return newest
}

// due has a session looked at whose timer fired.
func (t *Timers) due(m store.Delivery) {
	if !t.hold(m) {
		return
	}
	id, err := performatives.ParseSessionID(strings.TrimPrefix(m.Subject, timerDue))
	if err != nil {
		t.done(m, nil)
		return
	}
	at, err := time.Parse(time.RFC3339Nano, string(m.Data))
	if err != nil {
		at = time.Time{} // a version before this one set the timer
	}
	t.mu.Lock()
	t.waiting = append(t.waiting, fired{m, id, at})
	t.mu.Unlock()
	t.lookAtNext()
}

// lookAtNext has the session looked at that has waited longest.
func (t *Timers) lookAtNext() {
	t.mu.Lock()
	if len(t.waiting) == 0 || t.looking == lookedAtOnce {
		t.mu.Unlock()
		return
	}
	next := t.waiting[0]
	t.waiting = t.waiting[1:]
	t.looking++
	t.mu.Unlock()
	t.Due(next.id, next.at, func(err error) {
		t.done(next.Delivery, err)
		t.mu.Lock()
		t.looking--
		t.mu.Unlock()
		t.lookAtNext()
	})
}

// done acknowledges a timer, or has it come again.
func (t *Timers) done(m store.Delivery, failed error) {
	newest := t.release(m)
	if failed != nil {
		if err := newest.Later(time.Second); err != nil {
			t.Log.Debug("timer not returned", zap.Error(err))
		}
		return
	}
	if err := newest.Ack(); err != nil {
		t.Log.Debug("timer not acknowledged", zap.Error(err))
	}
}

// Set sets a session's timer.
func (t *Timers) Set(ctx context.Context, id performatives.SessionID, at time.Time) error {
	due := at.UTC().Format(time.RFC3339Nano)
	_, err := t.Store.Put(ctx, store.Message{
		Subject: timerAt + string(id),
		Data:    []byte(due),
		Header: store.Header{
			store.ScheduleHeader:       {"@at " + due},
			store.ScheduleTargetHeader: {timerDue + string(id)},
		},
	})
	return err
}

// Purge removes a session's timer.
func (t *Timers) Purge(ctx context.Context, id performatives.SessionID) error {
	return t.Store.Purge(ctx, api.TimersStream, timerAt+string(id))
}

// Overdue is how many timers fired that nobody has seen to, and when the oldest was due.
func (t *Timers) Overdue(ctx context.Context) (n uint64, since time.Time, err error) {
	first, err := t.Store.Next(ctx, api.TimersStream, 0, timerDue+"*")
	if err != nil || first == nil {
		return 0, since, err
	}
	if since, err = time.Parse(time.RFC3339Nano, string(first.Data)); err != nil {
		since = first.Time // a version before this one set the timer
	}
	n, err = t.Store.Unacknowledged(ctx, api.TimersStream, timerConsumer)
	return n, since, err
}

// Late is how long ago the oldest timer was due that fired here and is not done.
func (t *Timers) Late(now time.Time) (late time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.held {
		if at, err := time.Parse(time.RFC3339Nano, string(m.Data)); err == nil {
			late = max(late, now.Sub(at))
		}
	}
	return late
}

// Stored is when a session's timer fires, "" for none, and whether one fired that nobody has seen to.
func (t *Timers) Stored(ctx context.Context, id performatives.SessionID) (at string, due bool, err error) {
	set, err := t.Store.Last(ctx, api.TimersStream, timerAt+string(id))
	if err != nil {
		return "", false, err
	}
	if set != nil {
		at, _ = strings.CutPrefix(set.Header.Get(store.ScheduleHeader), "@at ")
	}
	fired, err := t.Store.Last(ctx, api.TimersStream, timerDue+string(id))
	return at, fired != nil, err
}
