package reads

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// SessionGet answers session.get.
func (x *Reads) SessionGet(ctx context.Context, c api.Caller, q api.GetSession) (api.SessionView, error) {
	var s Session
	if err := x.Readable(ctx, c, q.Session, func(now *Session) error { s = *now; return nil }); err != nil {
		return api.SessionView{}, err
	}
	return api.ViewPage(&s.State, s.At, q, c.Opens) // the session goes on meanwhile
}

// SessionList answers session.list.
func (x *Reads) SessionList(ctx context.Context, c api.Caller, q api.ListSessions) (api.Sessions, error) {
	if q.State != "" {
		if _, ok := session.ParsePhase(q.State); !ok {
			return api.Sessions{}, session.Refuse(session.MalformedEnvelope, "there is no state %.40q", q.State)
		}
	}
	if q.Awaiting != "" && q.Awaiting != "me" {
		return api.Sessions{}, session.Refuse(session.MalformedEnvelope, `awaiting is "me" or absent`)
	}
	page, most := api.NewPage[api.SessionSummary](q.Limit), api.PageSize(q.Limit)
	for cursor := q.Cursor; ; {
		some, err := x.OfCaller(ctx, c, q.State, cursor, most+1)
		if err != nil {
			return api.Sessions{}, err
		}
		for _, id := range some {
			if len(page.Items) == most {
				return sessionsBefore(page), nil
			}
			cursor = string(id)
			full := false
			if err := x.Listed(ctx, c, id, func(s *Session) error {
				row := api.Summarise(&s.State, c.Agent, s.At)
				if (q.State == "" || row.State.String() == q.State) && (q.Awaiting == "" || row.Awaiting) {
					fit.To(&row, api.MaxRowBytes)
					full = !page.Add(row, fit.Size(row))
				}
				return nil
			}); err != nil {
				return api.Sessions{}, err
			}
			if full {
				return sessionsBefore(page), nil
			}
		}
		if len(some) <= most {
			return api.Sessions{Sessions: page.Items}, nil
		}
	}
}

// sessionsBefore is a full page, and where the next one starts.
func sessionsBefore(page *api.PageOf[api.SessionSummary]) api.Sessions {
	return api.Sessions{Sessions: page.Items, Next: string(page.Items[len(page.Items)-1].Session)}
}

// SessionMessages answers session.messages.
func (x *Reads) SessionMessages(ctx context.Context, c api.Caller, q api.ListMessages) (api.Messages, error) {
	var sequences []uint64
	var archived bool
	look := func(s *Session) error {
		sequences, archived = s.Sequences, s.Archived
		if q.Message != "" {
			seen, has := s.State.Seen(q.Message)
			if !has {
				return session.Refuse(session.UnknownSession, "the session has no message %.36q", q.Message)
			}
			q.Since, q.Limit = seen.Sequence, 1
		}
		return nil
	}
	if err := x.Readable(ctx, c, q.Session, look); err != nil {
		return api.Messages{}, err
	}
	return x.o.Reader.Page(ctx, q, sequences, archived, c.Opens)
}

// InboxMessages answers inbox.messages.
func (x *Reads) InboxMessages(ctx context.Context, c api.Caller, q api.ListInbox) (api.InboxPage, error) {
	page := api.InboxPage{Messages: []api.InboxMessage{}}
	switch {
	case c.Operator:
		return page, session.Refuse(session.Unauthorized, "an operator has no inbox")
	case q.Since == nil:
		info, err := x.o.Store.Info(ctx, api.InboxStream)
		page.Cursor = info.Last + 1
		return page, err
	}
	page.Cursor = *q.Since
	size := 0
	err := x.o.Store.Read(ctx, api.InboxStream, api.InboxOf(c.Agent), page.Cursor, func(m store.Message) error {
		if len(page.Messages) == api.PageSize(q.Limit) || size+len(m.Data) > api.MaxPageBytes && size > 0 {
			page.More = true
			return store.ErrEnough
		}
		parts, err := archive.EntryOf(m).Parts()
		if err != nil {
			return err
		}
		page.Messages = append(page.Messages, api.InboxMessage{Cursor: m.Sequence, Envelope: m.Data, Sealed: parts})
		page.Cursor = m.Sequence + 1
		size += len(m.Data)
		return nil
	})
	return page, err
}
