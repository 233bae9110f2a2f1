package signing

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// keys remember what an assistant said under its idempotency keys, while this program runs.
type keys struct {
	mu   sync.Mutex
	acts []keyed                  // the newest last
	busy map[string]chan struct{} // the keys under which something is being said; closed after it
}

// A keyed act was said under a key.
type keyed struct {
	key      string
	content  string
	session  performatives.SessionID
	message  performatives.MessageID // stays, so that only one envelope of the act can be accepted
	envelope []byte                  // as it was sent, if the broker has not answered yet
	accepted api.Acceptance
}

// maxKeys are remembered.
const maxKeys = 1000

// once says an act with say, or, if it was said under its key before, finds how it was accepted:
// submit sends an envelope again that was not answered. Acts with the same key come one after
// another.
func (k *keys) once(
	ctx context.Context, act keyed, submit func(context.Context, []byte) (api.Acceptance, error), say func(context.Context, keyed) (api.Acceptance, error),
) (accepted api.Acceptance, err error) {
	leave, err := k.enter(ctx, act.key)
	if err != nil {
		return accepted, session.Refuse(session.Unavailable, "another call with this idempotencyKey is not answered yet: %s", err)
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	first, repeat := k.find(act.key)
	switch {
	case !repeat:
		accepted, err = say(ctx, act)
	case first.content != act.content:
		return accepted, session.Refuse(session.Duplicate, "something else was said under this idempotencyKey")
	case first.envelope == nil:
		first.accepted.Duplicate = true
		return first.accepted, nil
	default:
		act = first
		accepted, err = submit(ctx, act.envelope)
		if errors.Is(err, client.Refused(session.StaleTimestamp)) { // it was not accepted, and is too old to be
			accepted, err = say(ctx, act)
			repeat = false
		}
	}
	unanswered, is := errors.AsType[*client.Unanswered](err)
	refusal, refused := errors.AsType[*session.Refusal](err)
	switch {
	case err == nil:
		act.envelope, act.accepted = nil, accepted
		k.put(act)
	case is:
		act.envelope = unanswered.Envelope
		k.put(act)
	case !repeat || refused && refusal.Code.Judged():
		k.forget(act.key)
	default: // the refusal says nothing of the copy that was sent before
	}
	return accepted, answered(err)
}

// enter waits until nothing else is being said under a key.
func (k *keys) enter(ctx context.Context, key string) (leave func(), err error) {
	for key != "" {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		k.mu.Lock()
		done, busy := k.busy[key]
		if !busy {
			if k.busy == nil {
				k.busy = map[string]chan struct{}{}
			}
			done = make(chan struct{})
			k.busy[key] = done
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.busy, key)
				close(done)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	return func() {}, nil
}

func (k *keys) find(key string) (act keyed, found bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at := k.at(key); at >= 0 {
		return k.acts[at], true
	}
	return act, false
}

// put remembers an act as the newest.
func (k *keys) put(act keyed) {
	if act.key == "" {
		return
	}
	k.forget(act.key)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.acts = append(k.acts, act)
	if len(k.acts) > maxKeys {
		k.acts = slices.Delete(k.acts, 0, 1)
	}
}

func (k *keys) forget(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at := k.at(key); at >= 0 {
		k.acts = slices.Delete(k.acts, at, at+1)
	}
}

func (k *keys) at(key string) int {
	return slices.IndexFunc(k.acts, func(a keyed) bool { return a.key == key })
}
