package broker

import (
	"context"
	"time"

	"github.com/parley-asp/parley/access"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/sessionlist"
	"github.com/parley-asp/parley/turns"
)

func (b *Broker) openTurns(ctx context.Context) (err error) {
	b.turns, err = turns.Open(ctx, turns.Options{
		Store: b.store, Sessions: turnSessions{b}, Signer: b.custody.Signer, Timeout: b.ClaimTimeout, Watch: b.WatchInbox, Now: b.Now, Log: b.Log,
	})
	return err
}

// Turns are the turns that wait for agents.
func (b *Broker) Turns() *turns.Turns { return b.turns }

// turnSessions are the sessions as package turns sees them.
type turnSessions struct{ b *Broker }

// Open lists the sessions of an agent that are not over.
func (s turnSessions) Open(ctx context.Context, a performatives.Agent) (open []performatives.SessionID, err error) {
	for _, phase := range session.Phases() {
		if phase == session.Idle || phase == session.Escalated || phase.Over() {
			continue
		}
		for before := ""; ; before = string(open[len(open)-1]) {
			page, err := s.b.list.Page(ctx, sessionlist.One(a), phase.String(), before, api.MaxPage)
			if err != nil {
				return nil, err
			}
			open = append(open, page...)
			if len(page) < api.MaxPage {
				break
			}
		}
	}
	return open, nil
}

// Look is a session as it is now, if the agent has a part in it.
func (s turnSessions) Look(ctx context.Context, a performatives.Agent, id performatives.SessionID) (state session.State, at time.Time, err error) {
	err = s.b.access.Existing(ctx, api.Caller{Agent: a}, id, func(now *access.Session) error {
		if !now.State.HasPart(a) {
			return session.NoSuchSession()
		}
		state, at = now.State, now.At
		return nil
	})
	return state, at, err
}

// Messages is a page of a transcript that the agent may read.
func (s turnSessions) Messages(ctx context.Context, a performatives.Agent, q api.ListMessages) (api.Messages, error) {
	return s.b.queries.SessionMessages(ctx, api.Caller{Agent: a}, q)
}

// Submit submits an envelope of an agent. Its call was let in already.
func (s turnSessions) Submit(ctx context.Context, a performatives.Agent, id performatives.SessionID, envelope []byte) (api.Acceptance, error) {
	type answer struct {
		accepted api.Acceptance
		err      error
	}
	answered := make(chan answer, 1)
	s.b.Submit(id, a, envelope, func() {}, func(accepted api.Acceptance, err error) { answered <- answer{accepted, err} })
	select {
	case a := <-answered:
		return a.accepted, a.err
	case <-ctx.Done():
		return api.Acceptance{}, session.Busy()
	}
}
