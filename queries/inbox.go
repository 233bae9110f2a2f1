package queries

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// InboxMessages answers inbox.messages.
func (x *Queries) InboxMessages(ctx context.Context, c api.Caller, q api.ListInbox) (api.InboxPage, error) {
	page := api.InboxPage{Messages: []api.InboxMessage{}}
	switch {
	case c.Operator:
		return page, session.Refuse(session.Unauthorized, "an operator has no inbox")
	case q.Since == nil:
		info, err := x.Store.Info(ctx, api.InboxStream)
		page.Cursor = info.Last + 1
		return page, err
	}
	page.Cursor = *q.Since
	size := 0
	err := x.Store.Read(ctx, api.InboxStream, api.InboxOf(c.Agent), page.Cursor, func(m store.Message) error {
		if len(page.Messages) == api.PageSize(q.Limit) || size+len(m.Data) > api.MaxPageBytes && size > 0 {
			page.More = true
			return store.ErrEnough
		}
		page.Messages = append(page.Messages, api.InboxMessage{Cursor: m.Sequence, Envelope: m.Data})
		page.Cursor = m.Sequence + 1
		size += len(m.Data)
		return nil
	})
	return page, err
}
