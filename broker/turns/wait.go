package turns

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// maxWaits are one principal's at a time.
const maxWaits = 1024

// Wait answers turn.wait, once there is news that the caller was not given. It claims nothing. Without
// a cursor it goes on where the caller's last answer ended, and at the end of the wait it shows
// again what still waits, so who lost an answer loses no turn.
func (t *Turns) Wait(ctx context.Context, c api.Caller, q api.WaitTurn) (api.WaitedTurn, error) {
	var nothing api.WaitedTurn
	worker, err := workerName(c.Agent, q.Worker)
	switch {
	case err != nil:
		return nothing, err
	case c.Operator:
		return nothing, session.Refuse(session.Unauthorized, "an operator has no turns")
	case q.Seconds < 0 || q.Seconds > api.LongestWait.Seconds():
		return nothing, malformed("/seconds", fmt.Sprintf("is between 0 and %g", api.LongestWait.Seconds()))
	}
	of := waits{worker, q.Session}
	before, known := t.given.find(c.Agent, of, t.o.Now())
	goesOn := known && q.Since == ""
	if goesOn {
		q.Since = before.cursor
	}
	g, err := t.givenTo(c, q)
	if err != nil {
		return nothing, err
	}
	w, leave, err := t.waiters.enter(c.Agent)
	if err != nil {
		return nothing, err
	}
	defer leave()
	changed, stop, err := g.watch(ctx)
	if err != nil {
		return nothing, err
	}
	defer stop()
	ended := make(<-chan time.Time)
	if q.Seconds > 0 {
		timer := time.NewTimer(time.Duration(q.Seconds * float64(time.Second)))
		defer timer.Stop()
		ended = timer.C
	}
	for {
		found, err := w.look(ctx, g)
		if err != nil {
			return nothing, err
		}
		answer := remembered{cursor: g.cursor(), reminded: before.reminded, at: t.o.Now()}
		waited := api.WaitedTurn{Snapshot: found, Nothing: found == nil, Cursor: answer.cursor}
		over := q.Seconds == 0
		if found == nil && !over {
			select {
			case <-changed:
				continue
			case <-ended:
				over = true
			case <-t.stopped:
			case <-ctx.Done():
			}
		}
		if found == nil && over && goesOn {
			if found, waited.Cursor, err = g.remind(ctx, before.reminded); err != nil {
				return nothing, err
			}
			if waited.Snapshot, waited.Nothing = found, found == nil; found != nil {
				answer.reminded = found.Session
			}
		}
		if ctx.Err() == nil { // whoever hung up is given nothing
			t.given.keep(c.Agent, of, answer)
		}
		return waited, nil
	}
}

// StopWaits answers those who wait; they ask another broker.
func (t *Turns) StopWaits() { t.stopWaits.Do(func() { close(t.stopped) }) }

// look finds news. Those who wait for one principal look one after the other.
func (w *waiter) look(ctx context.Context, g given) (*api.Snapshot, error) {
	select {
	case w.looking <- struct{}{}:
		defer func() { <-w.looking }()
	case <-ctx.Done():
		return nil, nil
	}
	return g.news(ctx)
}

// waiters are those who wait, by principal.
type waiters struct {
	mu sync.Mutex
	of map[performatives.Agent]*waiter
}

type waiter struct {
	count   int
	looking chan struct{} // holds one while somebody looks
}

// enter counts a wait of a principal until it leaves.
func (w *waiters) enter(a performatives.Agent) (one *waiter, leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one = w.of[a]; one == nil {
		one = &waiter{looking: make(chan struct{}, 1)}
		w.of[a] = one
	}
	if one.count >= maxWaits {
		return nil, nil, api.RateLimited("waits", time.Second, "you wait for turns %d times already, which is the most at a time", maxWaits)
	}
	one.count++
	return one, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if one.count--; one.count == 0 {
			delete(w.of, a)
		}
	}, nil
}

func malformed(path, why string) error {
	return session.Refuse(session.MalformedEnvelope, "%s: %s", path, why).With(map[string]string{"path": path})
}
