package reads

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/session"
)

// SessionSnapshot answers session.snapshot.
func (x *Reads) SessionSnapshot(ctx context.Context, c api.Caller, q api.GetSnapshot) (api.Snapshot, error) {
	var s Session
	if err := x.Readable(ctx, c, q.Session, func(now *Session) error { s = *now; return nil }); err != nil {
		return api.Snapshot{}, err
	}
	var moves []session.Move
	if c.Agent != "" {
		moves = x.o.Moves(&s.State, c.Agent, s.At)
	}
	v := api.ViewSnapshot(&s.State, c, s.At, moves, x.o.Registry.Card)
	render.Say(&v)
	if q.Since == nil {
		return v, nil
	}
	page, err := x.o.Reader.Page(ctx, api.ListMessages{Session: q.Session, Since: *q.Since}, s.Sequences, s.Archived, c.Opens)
	if err != nil {
		return api.Snapshot{}, err
	}
	if v.News, v.Sealed = page.Messages, page.Sealed; page.Next != nil {
		v.Cursor = *page.Next
	}
	return v, nil
}
