package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/transcript"
)

// sceneTime is far more than a scene takes.
const sceneTime = 30 * time.Second

// A played scene is what there is to verify.
type played struct {
	id      performatives.SessionID
	heard   []transcript.Entry // by the agents, as it happened
	entries []transcript.Entry // exported through the api
	view    api.SessionView
	err     error // why the scene broke off
}

// play plays a scene: each of the cast in a goroutine of its own, until the
// session is over. show is given the entries as they happen, and beside the
// remarks between them.
func (s *stage) play(ctx context.Context, sc *scene, show func(transcript.Entry), beside func(string)) (p played) {
	ctx, cancel := context.WithTimeout(ctx, sceneTime)
	defer cancel()
	p.id = performatives.SessionID(uuid.Must(uuid.NewV7()).String())
	rec := newRecord(show)
	cast, err := s.gather(ctx, sc)
	defer func() {
		for _, a := range cast {
			s.leave(a.Client)
		}
	}()
	if err != nil {
		p.err = err
		return p
	}
	for _, a := range cast {
		a.say = func(text string) { rec.beside(func() { beside(text) }) }
	}
	opening := sc.opening
	opening.ID = p.id
	inviter, err := cast[0].Invite(ctx, opening)
	if err != nil {
		p.err = err
		return p
	}
	p.err = together(ctx, cast, func(ctx context.Context, i int) error {
		return cast[i].live(ctx, p.id, sc.cast[i].rules, rec.heard)
	})
	p.heard = rec.entries
	if p.err == nil {
		p.entries, p.err = inviter.Transcript(ctx)
	}
	if p.err == nil {
		p.view, p.err = inviter.View(ctx)
	}
	return p
}

// gather brings in all of the cast, or as many as could be.
func (s *stage) gather(ctx context.Context, sc *scene) (cast []*actor, err error) {
	for _, r := range sc.cast {
		c, err := s.enter(ctx, r)
		if err != nil {
			return cast, fmt.Errorf("%s: %w", r.agent, err)
		}
		cast = append(cast, &actor{Client: c})
	}
	return cast, nil
}

// together has all of the cast do something at once. The first who fails ends
// it for everybody.
func together(ctx context.Context, cast []*actor, do func(context.Context, int) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	for i, a := range cast {
		all.Go(func() {
			if err := do(ctx, i); err != nil {
				fail(fmt.Errorf("%s: %w", a.Agent(), err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// live reads the inbox and acts on it until the session is over. A message is
// acknowledged when it is dealt with.
func (a *actor) live(ctx context.Context, id performatives.SessionID, decide rules, heard func(transcript.Entry)) error {
	if err := a.comeIn(ctx, id); err != nil {
		return err
	}
	for m, err := range a.Session(id).Messages(ctx) {
		if err != nil {
			return err
		}
		heard(m.Entry)
		if err := decide(ctx, a, m); err != nil {
			return err
		}
		if err := m.Ack(); err != nil {
			return err
		}
	}
	return nil
}

// comeIn waits for the first message of the session. What an earlier demo on
// the same broker left in the inbox is put away.
func (a *actor) comeIn(ctx context.Context, id performatives.SessionID) error {
	for m, err := range a.Messages(ctx) {
		if err != nil {
			return err
		}
		if m.Message.Session == id {
			return nil // not acknowledged: it comes again
		}
		if err := m.Ack(); err != nil {
			return err
		}
	}
	return client.ErrClosed
}
