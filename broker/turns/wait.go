package turns

import (
	"context"
	"sync"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// maxWaits are one principal's at a time.
const maxWaits = 1024

// Wait answers turn.wait, once a turn waits for the caller. It claims nothing.
func (t *Turns) Wait(ctx context.Context, c api.Caller, q api.WaitTurn) (answer api.WaitedTurn, err error) {
	answer.Status = api.WaitNone
	switch {
	case c.Operator:
		return answer, session.Refuse(session.Unauthorized, "an operator has no turns")
	case q.Wait < 0:
		return answer, malformed("/waitMs", "is at least 0")
	case q.Since != nil && q.Session == "":
		return answer, malformed("/since", "goes with a sessionId")
	}
	w, leave, err := t.waits.enter(c.Agent)
	if err != nil {
		return answer, err
	}
	defer leave()
	changed, stop, err := t.o.Watch(ctx, c.Agent)
	if err != nil {
		return answer, err
	}
	defer stop()
	timer := time.NewTimer(min(time.Duration(q.Wait)*time.Millisecond, api.LongestWait))
	defer timer.Stop()
	for {
		if answer, err = t.look(ctx, c.Agent, q, w); err != nil || answer.Status != api.WaitNone || q.Wait == 0 {
			return answer, err
		}
		select {
		case <-changed:
		case <-timer.C:
			return answer, nil
		case <-t.stopped:
			return answer, nil
		case <-ctx.Done():
			return answer, nil
		}
	}
}

// StopWaits answers those who wait; they ask another broker.
func (t *Turns) StopWaits() { t.stopWaits.Do(func() { close(t.stopped) }) }

// look answers from what there is now.
func (t *Turns) look(ctx context.Context, a performatives.Agent, q api.WaitTurn, w *waiter) (answer api.WaitedTurn, err error) {
	answer.Status = api.WaitNone
	select { // those who wait for one principal look one after the other
	case w.looking <- struct{}{}:
		defer func() { <-w.looking }()
	case <-ctx.Done():
		return answer, nil
	}
	if q.Session != "" {
		state, _, err := t.o.Look(ctx, a, q.Session)
		switch {
		case err != nil:
			return answer, err
		case state.Phase.Over():
			answer.Status = api.WaitOver
			return answer, nil
		case q.Since != nil && state.Next > *q.Since:
			answer.Status = api.WaitNews
		}
	}
	found, waits, err := t.longest(ctx, a, api.PickUpTurn{Session: q.Session, Modes: q.Modes}, func(string) bool { return true })
	if err != nil || !waits {
		return answer, err
	}
	until := t.o.Now().Add(t.o.Timeout)
	turn, err := t.show(ctx, a, found, claim{Until: until, Deadline: api.Timestamp(deadline(found, until))})
	turn.Claim = nil
	return api.WaitedTurn{Status: api.WaitTurnWaits, Turn: &turn}, err
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
