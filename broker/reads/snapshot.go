package reads

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/session"
)

// SessionSnapshot answers session.snapshot. Who has yet to accept a delegation sees that alone.
func (x *Reads) SessionSnapshot(ctx context.Context, c api.Caller, q api.GetSnapshot) (api.Snapshot, error) {
	var s Session
	offered := false
	if err := x.Existing(ctx, c, q.Session, func(now *Session) error {
		s = *now
		err := x.readable(c, now)
		if p, has := now.State.Party(c.Agent); err != nil && has {
			offered = now.State.GrantsOf(p, now.At)[0].Status == delegation.Offered
		}
		if offered {
			return nil
		}
		return err
	}); err != nil {
		return api.Snapshot{}, err
	}
	var moves []session.Move
	if c.Agent != "" {
		moves = x.o.Moves(&s.State, c.Agent, s.At)
	}
	if offered {
		v := api.ViewOffered(&s.State, c, s.At, moves)
		render.Say(&v)
		return v, nil
	}
	you, _ := x.o.Registry.Member(c.Agent)
	you.Agent = c.Agent
	v := api.ViewSnapshot(&s.State, you, s.At, moves, x.o.Registry.Card)
	render.Say(&v)
	var err error
	if v.Private, err = x.o.Private(ctx, &s.State, c.Agent, s.At); err != nil || q.Since == nil {
		return v, err
	}
	unsealed, err := x.o.Unsealed(ctx, &s.State, c.Agent)
	if err != nil {
		return api.Snapshot{}, err
	}
	page, err := x.o.Reader.Page(ctx, api.ListMessages{Session: q.Session, Since: *q.Since}, s.Sequences, s.Archived, archive.Opens{Of: c.Opens, Unsealed: unsealed})
	if err != nil {
		return api.Snapshot{}, err
	}
	if v.News, v.Sealed = page.Messages, page.Sealed; page.Next != nil {
		v.Cursor = *page.Next
	}
	return v, nil
}
