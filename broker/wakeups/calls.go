package wakeups

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/internal/webhook"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// failing are the sessions of a row of which an entry is told again. What comes shortly before then is merged into it: its
// call is about the session as it is by then, since the first of them.
type failing struct {
	mu  sync.Mutex
	due map[performatives.SessionID]again
}

// again is an entry that is told again.
type again struct {
	entry uint64    // its sequence in the stream
	since uint64    // the first of those that were merged into it
	came  time.Time // after which it is given up
	at    time.Time
}

// merges takes an entry into another one that is told again within a second. An old one would be given up too soon.
func (f *failing) merges(id performatives.SessionID, d store.Delivery, since uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	other := f.due[id]
	wait := time.Until(other.at)
	if other.entry == d.Sequence || wait <= 0 || wait > shortest || d.Time.Sub(other.came) > giveUp/2 {
		return false
	}
	other.since = min(other.since, since)
	f.due[id] = other
	return true
}

// later notes that an entry is told again after a delay.
func (f *failing) later(id performatives.SessionID, d store.Delivery, since uint64, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if other, is := f.due[id]; is {
		since = min(since, other.since)
	}
	if len(f.due) >= maxPending {
		maps.DeleteFunc(f.due, func(_ performatives.SessionID, a again) bool { return now.After(a.at.Add(ackWait)) })
	}
	f.due[id] = again{d.Sequence, since, d.Time, now.Add(delay)}
}

// since is the first entry that a call is about.
func (f *failing) since(id performatives.SessionID, d store.Delivery, own uint64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.due[id]; other.entry == d.Sequence {
		return min(own, other.since)
	}
	return own
}

// done forgets an entry that is not told again.
func (f *failing) done(id performatives.SessionID, d store.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.due[id].entry == d.Sequence {
		delete(f.due, id)
	}
}

// follow makes the calls of a row until it ends.
func (w *Wakeups) follow(ctx context.Context, at string, r *row) {
	for {
		queue, err := w.queue(ctx, r)
		if err == nil {
			err = w.serve(ctx, queue, at, r)
		}
		if ctx.Err() != nil {
			return
		}
		w.o.Log.Warn("wakeup", zap.String("agent", string(r.Agent)), zap.Error(err))
		if background.Pause(ctx, shortest) != nil {
			return
		}
	}
}

// serve makes the calls of a row. An entry is taken only when there is room for its call, so that no other broker waits for it.
func (w *Wakeups) serve(ctx context.Context, queue *store.Queue, at string, r *row) error {
	in, err := queue.Receive(pullExpiry)
	if err != nil {
		return err
	}
	defer in.Stop()
	slots, failed := make(chan struct{}, maxUnderWay), &failing{due: map[performatives.SessionID]again{}}
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		d, err := in.Next(ctx)
		if err != nil {
			return err
		}
		if !w.work.Go(func(context.Context) {
			defer func() { <-slots }()
			defer held(d)()
			w.deliver(ctx, at, r, d, failed)
		}) {
			return d.Later(shortest) // to whoever is there then
		}
	}
}

// held keeps an entry until end is called: its call may have to wait for those of other rows.
func held(d store.Delivery) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for background.Pause(ctx, ackWait/2) == nil {
			d.Progress() //nolint:errcheck // then it comes again
		}
	}()
	return cancel
}

// deliver makes one call, or has it come again.
func (w *Wakeups) deliver(ctx context.Context, at string, r *row, d store.Delivery, failed *failing) {
	id := performatives.SessionID(d.Subject[strings.LastIndexByte(d.Subject, '.')+1:])
	log := w.o.Log.With(zap.String("agent", string(r.Agent)), zap.String("subject", d.Subject))
	over := false
	entry, err := api.ReadEntry(d.Data, nil)
	if err == nil && !failed.merges(id, d, entry.Sequence) {
		since := failed.since(id, d, entry.Sequence)
		over, err = w.call(ctx, r, api.WakeupCall{Type: api.WakeupType, Hash: entry.Hash, At: d.Time.UTC(), Agent: r.Agent, Session: id, Since: since})
	}
	age := w.o.Now().Sub(d.Time)
	switch {
	case ctx.Err() != nil:
		err = d.Later(shortest) // to whoever is there then
	case errors.Is(err, webhook.ErrGone), err == nil && over && r.Session != "":
		if err = w.remove(ctx, at, r); errors.Is(err, store.ErrConflict) {
			err = d.Later(shortest) // to what is set now
		}
	case err == nil:
		failed.done(id, d)
		err = d.Ack()
	case age > giveUp:
		log.Warn("wakeup: given up", zap.Error(err))
		failed.done(id, d)
		err = d.Ack()
	default:
		log.Info("wakeup: attempt failed", zap.Error(err))
		delay := min(max(age, shortest), longest)
		failed.later(id, d, entry.Sequence, delay)
		err = d.Later(delay)
	}
	if err != nil {
		log.Debug("wakeup", zap.Error(err))
	}
}

// call makes one call. over means that the session is.
func (w *Wakeups) call(ctx context.Context, r *row, about api.WakeupCall) (over bool, err error) {
	state, now, err := w.o.Look(ctx, r.Agent, about.Session)
	if errors.Is(err, &session.Refusal{Code: session.UnknownSession}) {
		return true, nil // its retention is over, or the principal has no part any more
	}
	if err != nil {
		return false, err
	}
	if over = state.Phase.Over(); r.Turns && !state.Awaits(w.o.Member(r.Agent), now) {
		return over, nil
	}
	body, err := json.Marshal(about)
	if err != nil {
		return over, err
	}
	at, err := r.to.address(r.Agent)
	if err != nil {
		return over, err
	}
	leave, err := w.calls.Enter(ctx, string(r.Agent), at)
	if err != nil {
		return over, err
	}
	err = w.send(ctx, r.to, webhook.Call{ID: string(about.Hash), At: w.o.Now(), Body: body, Token: r.to.Token})
	if errors.Is(err, webhook.ErrAnswered) {
		leave(nil) // the server is there: what it refuses of one session keeps no other waiting
	} else {
		leave(err)
	}
	return over, err
}

// send makes one attempt. Over NATS any reply is an answer.
func (w *Wakeups) send(ctx context.Context, to target, c webhook.Call) error {
	if to.Subject == "" {
		_, err := c.Post(ctx, w.o.Client, to.URL, to.Secret)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Attempt)
	defer cancel()
	return w.o.Store.Bus().Call(ctx, api.Wakeups+strings.TrimPrefix(to.Subject, api.Inboxes), c.Header(to.Secret), c.Body)
}
