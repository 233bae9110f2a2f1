package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/session"
)

// keys remember what an assistant said under its idempotency keys, while this program runs.
type keys struct {
	mu   sync.Mutex
	acts []keyed // the newest last
}

// A keyed act was said under a key.
type keyed struct {
	key      string
	content  string
	envelope []byte // as it was sent, if the broker has not answered yet
	accepted api.Acceptance
}

// maxKeys are remembered.
const maxKeys = 1000

// once says something with say, or, if it was said under the key before, finds how it was
// accepted: submit sends an envelope again that was not answered. Acts with a key come one after
// another.
func (k *keys) once(ctx context.Context, key string, content []byte, submit func(context.Context, []byte) (api.Acceptance, error), say func() (api.Acceptance, error)) (accepted api.Acceptance, err error) {
	if key == "" {
		accepted, err = say()
		return accepted, answered(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	act := keyed{key: key, content: string(content)}
	if at := slices.IndexFunc(k.acts, func(a keyed) bool { return a.key == key }); at >= 0 {
		act = k.acts[at]
		switch {
		case act.content != string(content):
			return accepted, session.Refuse(session.Duplicate, "something else was said under this idempotencyKey")
		case act.envelope == nil:
			act.accepted.Duplicate = true
			return act.accepted, nil
		}
		k.acts = slices.Delete(k.acts, at, at+1)
		say = func() (api.Acceptance, error) { return submit(ctx, act.envelope) }
	}
	accepted, err = say()
	act.envelope, act.accepted = nil, accepted
	if unanswered, is := errors.AsType[*client.Unanswered](err); is {
		act.envelope = unanswered.Envelope
	} else if err != nil {
		return accepted, answered(err)
	}
	k.acts = append(k.acts, act)
	if len(k.acts) > maxKeys {
		k.acts = slices.Delete(k.acts, 0, 1)
	}
	return accepted, answered(err)
}
