package gateway

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// pageSize is how many entries or messages are read at a time.
const pageSize = 100

// A Feed reads a session's entries in order as they are stored. It holds no queue: it reads what
// is there when Changed reports something new, so a slow reader costs nothing but its connection.
type Feed struct {
	Changed <-chan struct{}
	Next    uint64 // the sequence number of the entry that is read next

	c    Caller
	id   performatives.SessionID
	stop func()
}

// Follow follows a session from an entry on.
func (c Caller) Follow(ctx context.Context, id performatives.SessionID, since uint64) (*Feed, error) {
	changed, stop, err := c.service.WatchSession(ctx, id)
	return &Feed{Changed: changed, Next: since, c: c, id: id, stop: stop}, err
}

// Close ends the feed. Of the zero Feed, it does nothing.
func (f *Feed) Close() {
	if f.stop != nil {
		f.stop()
	}
}

// An Entry is what a feed reads of an entry, and the entry as it is.
type Entry struct {
	Sequence  uint64 `json:"sequenceNumber"`
	Integrity struct {
		Receipt performatives.Receipt `json:"receipt"`
	} `json:"integrity"`
	JSON jsontext.Value `json:"-"`
}

// Read emits the entries that are there. While the broker cannot answer, it asks again.
func (f *Feed) Read(ctx context.Context, emit func(Entry) (over bool, err error)) (over bool, err error) {
	for more := true; more && !over && err == nil; {
		more, over, err = f.readPage(ctx, emit)
	}
	return over, err
}

func (f *Feed) readPage(ctx context.Context, emit func(Entry) (over bool, err error)) (more, over bool, err error) {
	ctx, end := Page(ctx)
	defer end()
	var page api.Messages
	if err := Retry(ctx, func() (err error) {
		page, err = f.c.Messages(ctx, api.ListMessages{Session: f.id, Since: f.Next, Limit: pageSize})
		return err
	}); err != nil {
		return false, false, err
	}
	for _, raw := range page.Messages {
		e := Entry{JSON: raw}
		if err := json.Unmarshal(raw, &e); err != nil {
			return false, false, err
		}
		if over, err = emit(e); err != nil {
			return false, over, err
		}
		if f.Next = e.Sequence + 1; over {
			return false, true, nil
		}
	}
	return page.Next != nil, false, nil
}

// An InboxFeed reads the messages that arrive in all sessions of a caller, as a Feed does. It
// takes nothing from the caller's consumer.
type InboxFeed struct {
	Changed <-chan struct{}
	Next    uint64 // the cursor of what is read next

	c    Caller
	stop func()
}

// FollowInbox follows the caller's inbox from a cursor on; nil is from now on.
func (c Caller) FollowInbox(ctx context.Context, since *uint64) (*InboxFeed, error) {
	changed, stop, err := c.service.WatchInbox(ctx, c.Agent)
	if err != nil {
		return nil, err
	}
	f := &InboxFeed{Changed: changed, c: c, stop: stop}
	if since != nil {
		f.Next = *since
		return f, nil
	}
	var page api.InboxPage
	if err := c.Call(ctx, api.InboxMessages.Verb, api.ListInbox{}, &page); err != nil {
		stop()
		return nil, err
	}
	f.Next = page.Cursor
	return f, nil
}

// Close ends the feed.
func (f *InboxFeed) Close() { f.stop() }

// Read emits the messages that are there, a page at a time. While the broker cannot answer, it
// asks again.
func (f *InboxFeed) Read(ctx context.Context, emit func([]api.InboxMessage) error) (err error) {
	for more := true; more && err == nil; {
		more, err = f.readPage(ctx, emit)
	}
	return err
}

func (f *InboxFeed) readPage(ctx context.Context, emit func([]api.InboxMessage) error) (more bool, err error) {
	ctx, end := Page(ctx)
	defer end()
	var page api.InboxPage
	if err := Retry(ctx, func() error {
		return f.c.Call(ctx, api.InboxMessages.Verb, api.ListInbox{Since: &f.Next, Limit: pageSize}, &page)
	}); err != nil {
		return false, err
	}
	if err := emit(page.Messages); err != nil {
		return false, err
	}
	f.Next = page.Cursor
	return page.More, nil
}
