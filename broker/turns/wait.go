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

// Wait answers turn.wait, once there is news that the caller was not given. It claims nothing.
func (t *Turns) Wait(ctx context.Context, c api.Caller, q api.WaitTurn) (api.WaitedTurn, error) {
	var nothing api.WaitedTurn
	switch {
	case c.Operator:
		return nothing, session.Refuse(session.Unauthorized, "an operator has no turns")
	case q.Seconds < 0 || q.Seconds > api.LongestWait.Seconds():
		return nothing, malformed("/seconds", fmt.Sprintf("is between 0 and %g", api.LongestWait.Seconds()))
	}
	g, err := t.givenTo(c, q)
	if err != nil {
		return nothing, err
	}
	w, leave, err := t.waits.enter(c.Agent)
	if err != nil {
		return nothing, err
	}
	defer leave()
	changed, stop, err := g.watch(ctx)
	if err != nil {
		return nothing, err
	}
	defer stop()
	timer := time.NewTimer(time.Duration(q.Seconds * float64(time.Second)))
	defer timer.Stop()
	for {
		found, err := w.look(ctx, g)
		if err != nil || found != nil || q.Seconds == 0 {
			return api.WaitedTurn{Snapshot: found, Nothing: found == nil, Cursor: g.cursor()}, err
		}
		nothing = api.WaitedTurn{Nothing: true, Cursor: g.cursor()}
		select {
		case <-changed:
		case <-timer.C:
			return nothing, nil
		case <-t.stopped:
			return nothing, nil
		case <-ctx.Done():
			return nothing, nil
		}
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

// waits are those who wait, by principal.
type waits struct {
	mu sync.Mutex
	of map[performatives.Agent]*waiter
}

type waiter struct {
	count   int
	looking chan struct{} // holds one while somebody looks
}

// enter counts a wait of a principal until it leaves.
func (w *waits) enter(a performatives.Agent) (one *waiter, leave func(), err error) {
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
