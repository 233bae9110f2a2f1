package broker

import (
	"context"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/feed"
	"github.com/parley-asp/parley/performatives"
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
