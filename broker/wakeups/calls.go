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

// failing are the sessions of a row of which an entry is told again, and when at the earliest. What comes shortly before
// then needs no call of its own: that one is about the session as it is by then.
type failing struct {
	mu  sync.Mutex
	due map[performatives.SessionID]time.Time
}

// waits reports whether another entry of a session is told again shortly.
func (f *failing) waits(id performatives.SessionID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	wait := time.Until(f.due[id])
	return wait > 0 && wait <= shortest
}

// later reports whether an entry is to be told again after a delay, because no other one of its session is before.
func (f *failing) later(id performatives.SessionID, delay time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if due := f.due[id]; now.Before(due) && !due.After(now.Add(delay)) {
		return false
	}
	if len(f.due) >= maxPending {
		maps.DeleteFunc(f.due, func(_ performatives.SessionID, due time.Time) bool { return now.After(due) })
	}
	f.due[id] = now.Add(delay)
	return true
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
	slots, failed := make(chan struct{}, maxUnderWay), &failing{due: map[performatives.SessionID]time.Time{}}
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		d, found, err := queue.Take(ctx, pullExpiry)
		goes := found && w.work.Go(func(context.Context) {
			defer func() { <-slots }()
			defer held(d)()
			w.deliver(ctx, at, r, d, failed)
		})
		if !goes {
			<-slots
		}
		if found && !goes { // to whoever is there then
			err = d.Later(shortest)
		}
		if err != nil {
			return err
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
	id := sessionOf(d)
	log := w.o.Log.With(zap.String("agent", string(r.Agent)), zap.String("subject", d.Subject))
	var over bool
	var err error
	if !failed.waits(id) {
		over, err = w.call(ctx, r, id, d)
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
		err = d.Ack()
	case age > giveUp:
		log.Warn("wakeup: given up", zap.Error(err))
		err = d.Ack()
	default:
		log.Info("wakeup: attempt failed", zap.Error(err))
		if delay := min(max(age, shortest), longest); failed.later(id, delay) {
			err = d.Later(delay)
		} else {
			err = d.Ack()
		}
	}
	if err != nil {
		log.Debug("wakeup", zap.Error(err))
	}
}

// sessionOf is the session of an entry in an inbox.
func sessionOf(d store.Delivery) performatives.SessionID {
	return performatives.SessionID(d.Subject[strings.LastIndexByte(d.Subject, '.')+1:])
}

// call makes one call. over means that the session is.
func (w *Wakeups) call(ctx context.Context, r *row, id performatives.SessionID, d store.Delivery) (over bool, err error) {
	state, now, err := w.o.Look(ctx, r.Agent, id)
	if errors.Is(err, &session.Refusal{Code: session.UnknownSession}) {
		return true, nil // its retention is over, or the principal has no part any more
	}
	if err != nil {
		return false, err
	}
	if over = state.Phase.Over(); r.Turns && !state.Awaits(w.o.Member(r.Agent), now) {
		return over, nil
	}
	entry, err := api.ReadEntry(d.Data, nil)
	if err != nil {
		return over, err
	}
	body, err := json.Marshal(api.WakeupCall{Type: api.WakeupType, Hash: entry.Hash, At: d.Time.UTC(), Agent: r.Agent, Session: id, Since: entry.Sequence})
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
	err = w.send(ctx, r.to, webhook.Call{ID: string(entry.Hash), At: w.o.Now(), Body: body, Token: r.to.Token})
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
