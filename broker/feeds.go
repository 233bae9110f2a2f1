package broker

import (
	"context"
	"errors"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/feed"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// openFeed follows the inbox copies. Each entry has one for somebody, written after the
// entry. The transcripts' own stream cannot be followed: once it has an archive, the server
// gives its messages to the archiver alone.
func (b *Broker) openFeed() {
	b.copies = feed.New(b.store, api.InboxStream, func(subject string) []string {
		owner, id := subject[:strings.LastIndexByte(subject, '.')+1], subject[strings.LastIndexByte(subject, '.')+1:]
		return []string{owner + "*", api.InboxesOf(performatives.SessionID(id))}
	})
}

// WatchSession tells of new entries of a session.
func (b *Broker) WatchSession(ctx context.Context, id performatives.SessionID) (changed <-chan struct{}, stop func(), err error) {
	return b.copies.Watch(ctx, api.InboxesOf(id))
}

// WatchInbox tells of new messages in a principal's inbox.
func (b *Broker) WatchInbox(ctx context.Context, a performatives.Agent) (changed <-chan struct{}, stop func(), err error) {
	return b.copies.Watch(ctx, api.InboxOf(a))
}

// inboxMessages answers inbox.messages.
func (b *Broker) inboxMessages(ctx context.Context, c api.Caller, q api.ListInbox) (api.InboxPage, error) {
	page := api.InboxPage{Messages: []api.InboxMessage{}}
	switch {
	case c.Operator:
		return page, session.Refuse(session.Unauthorized, "an operator has no inbox")
	case q.Since == nil:
		info, err := b.store.Info(ctx, api.InboxStream)
		page.Cursor = info.Last + 1
		return page, err
	}
	page.Cursor = *q.Since
	size := 0
	err := b.store.Read(ctx, api.InboxStream, api.InboxOf(c.Agent), page.Cursor, func(m store.Message) error {
		if len(page.Messages) == api.PageSize(q.Limit) || size+len(m.Data) > api.MaxPageBytes && size > 0 {
			page.More = true
			return errPageFull
		}
		page.Messages = append(page.Messages, api.InboxMessage{Cursor: m.Sequence, Envelope: m.Data})
		page.Cursor = m.Sequence + 1
		size += len(m.Data)
		return nil
	})
	if errors.Is(err, errPageFull) {
		err = nil
	}
	return page, err
}
