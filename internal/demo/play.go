package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/modes"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/transcript"
)

// sceneTime bounds a scene.
const sceneTime = 30 * time.Second

// played is the outcome of a scene, to verify.
type played struct {
	id       performatives.SessionID
	received []transcript.Entry // by the agents
	entries  []transcript.Entry // exported from the broker
	view     api.SessionView

	agreement *agreement.Document // of a session in binding/1, with its position in the log
	err       error               // why the scene failed
}

// play plays a scene, each role in its own goroutine, until the session is over. It
// calls show with each entry as it happens, and remark with the remarks between.
func (s *stage) play(ctx context.Context, sc *scene, show func(transcript.Entry), remark func(string)) (p played) {
	ctx, cancel := context.WithTimeout(ctx, sceneTime)
	defer cancel()
	p.id = performatives.SessionID(uuid.Must(uuid.NewV7()).String())
	rec := newRecord(show)
	cast, err := s.connectAll(ctx, sc)
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
		a.say = func(text string) { rec.remark(func() { remark(text) }) }
	}
	if sc.script != nil {
		t := &talk{stage: s, scene: sc, cast: cast, rec: rec}
		p.err = sc.script(ctx, t)
		p.id = t.id
	} else {
		p.err = enact(ctx, sc, cast, p.id, rec)
	}
	p.received = rec.entries
	if p.err == nil {
		p.entries, p.err = cast[0].Session(p.id).Transcript(ctx)
	}
	if p.err == nil {
		p.view, p.err = cast[0].Session(p.id).View(ctx)
	}
	if p.err == nil && sc.mode() == modes.Binding.Name {
		var d agreement.Document
		d, p.err = logged(ctx, cast[0].Client, p.id)
		p.agreement = &d
	}
	return p
}

// enact has the first role invite the others, and each act by its rules.
func enact(ctx context.Context, sc *scene, cast []*actor, id performatives.SessionID, rec *record) error {
	opening := sc.opening
	opening.ID = id
	if _, err := cast[0].Invite(ctx, opening); err != nil {
		return err
	}
	return together(ctx, cast, func(ctx context.Context, i int) error {
		return cast[i].run(ctx, id, sc.cast[i].rules, rec.add)
	})
}

// connectAll connects every role. On an error it returns those it connected.
func (s *stage) connectAll(ctx context.Context, sc *scene) (cast []*actor, err error) {
	for _, r := range sc.cast {
		a, err := s.enter(ctx, r)
		if err != nil {
			return cast, fmt.Errorf("%s: %w", r.agent, err)
		}
		cast = append(cast, a)
	}
	return cast, nil
}

// together calls do for every actor in parallel. The first error cancels the
// others.
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

// run answers the messages of the inbox until the session is over. It acknowledges
// a message after its rules have answered it.
func (a *actor) run(ctx context.Context, id performatives.SessionID, decide rules, received func(transcript.Entry)) error {
	if err := a.join(ctx, id); err != nil {
		return err
	}
	for m, err := range a.Session(id).Messages(ctx) {
		if err != nil {
			return err
		}
		received(m.Entry)
		decided := decide(ctx, a, m)
		if decided != nil && !errors.Is(decided, errOver) {
			return decided
		}
		if err := m.Ack(); err != nil || decided != nil {
			return err
		}
	}
	return nil
}

// errOver is of rules that know that the session is over, because they ended it.
var errOver = errors.New("the session is over")

// join waits for the first message of the session, and drops what an earlier demo
// on the same broker left in the inbox.
func (a *actor) join(ctx context.Context, id performatives.SessionID) error {
	for m, err := range a.Messages(ctx) {
		if err != nil {
			return err
		}
		if m.Message.Session == id {
			return nil // not acknowledged, so it is redelivered
		}
		if err := m.Ack(); err != nil {
			return err
		}
	}
	return client.ErrClosed
}
