package client

import (
	"context"
	"errors"
	"log/slog"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client/internal/web"
	"github.com/parley-asp/parley/session"
)

// HTTP speaks HTTP with a token instead of NATS, at an address such as
// http://127.0.0.1:8080; that given to [Connect] is not used. A hosted agent needs
// no key, because the broker signs what it says; another one gives its [Key] too.
// Messages come from the beginning of the inbox: acknowledgements are known to this
// client only. Verbs without a path in HTTP, such as schema.put,
// are errors.
func HTTP(address, token string) Option {
	return func(c *config) error {
		var err error
		c.http, err = web.New(address, token, ahead)
		return err
	}
}

// follow fills the mailbox from the events of the inbox until the context ends or the
// token is refused.
func (f *feed) follow(ctx context.Context) error {
	log := f.in.client.link.log
	for attempt := 0; ; attempt++ {
		came, err := f.events(ctx)
		if _, refused := errors.AsType[*session.Refusal](err); refused && !worthAsking(err) || ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		log.Debug("inbox", slog.Any("error", err))
		if came {
			attempt = 0
		}
		if !wait(ctx, pause(attempt)) {
			return ctx.Err()
		}
	}
}

// events reads a stream of events until it ends.
func (f *feed) events(ctx context.Context) (came bool, err error) {
	in := f.in
	err = in.client.link.http.Events(ctx, in.cursor.Load(), func(id uint64, data []byte) error {
		came = true
		if _, err := f.room(ctx); err != nil {
			return err
		}
		if err := f.received(ctx, id, data); err != nil {
			return err
		}
		in.cursor.Store(id)
		return nil
	})
	return came, err
}

// received puts an event into the mailbox. An event is the envelope alone: what opens it is asked for.
func (f *feed) received(ctx context.Context, id uint64, data []byte) error {
	in := f.in
	entry, err := readEntry(data, nil)
	if err == nil && len(entry.Message.Digests()) > 0 {
		page, asked := call(ctx, &in.client.Calls, api.SessionMessages, api.ListMessages{Session: entry.Message.Session, Message: entry.Message.ID})
		if _, refused := errors.AsType[*session.Refusal](asked); asked != nil && (!refused || worthAsking(asked)) {
			return asked
		}
		if parts := page.Sealed[entry.Message.ID]; parts != nil {
			if err = entry.Message.Open(parts); err == nil {
				err = entry.Message.DecodeBody()
			}
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if err != nil {
		in.fault(id, &unreadable{err})
		return nil
	}
	in.put(&Message{Entry: entry, inbox: in, came: []delivery{{by: f}}})
	return nil
}
