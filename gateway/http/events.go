package httpgateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/session"
)

const (
	eventsType  = "text/event-stream"
	commentWait = 15 * time.Second       // between comments on a stream that is idle
	writeWithin = 10 * time.Second       // or the reader is too slow, and resumes on another connection
	retryWait   = 250 * time.Millisecond // after a reading that was refused for now
	eventPage   = 100
	writeAtOnce = 64 << 10 // bytes
)

// A stream is an open SSE response. It holds no queue: it reads what is stored when it is
// told of something new, so a slow reader costs nothing but its connection.
type stream struct {
	c   *call
	out *http.ResponseController
}

// events serves a session's entries as they are accepted.
func (c *call) events() {
	from, err := c.resume("since_sequence")
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	s := sessionEvents{&sessionReader{c: c}}
	if from != nil {
		s.from = *from
	}
	c.stream(func(ctx context.Context) (<-chan struct{}, func(), error) {
		return c.g.o.Feeds.WatchSession(ctx, c.session())
	}, s.first, s.read)
}

// inboxEvents serves what arrives in all of the caller's sessions.
func (c *call) inboxEvents() {
	i := &inboxEvents{c: c}
	from, err := c.resume("cursor")
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	if from != nil && c.r.Header.Get("Last-Event-ID") == "" {
		*from++ // a cursor is the id of the last event that was seen, too
	}
	i.next = from
	c.stream(func(ctx context.Context) (<-chan struct{}, func(), error) {
		return c.g.o.Feeds.WatchInbox(ctx, c.pass.Agent)
	}, i.first, i.read)
}

// resume is where a stream goes on: after Last-Event-ID, or at the parameter.
func (c *call) resume(parameter string) (*uint64, error) {
	for name := range c.r.URL.Query() {
		if name != parameter {
			return nil, malformed("/"+clip(name), "the path takes no such parameter")
		}
	}
	value, plus := c.r.URL.Query().Get(parameter), uint64(0)
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		parameter, value, plus = "Last-Event-ID", last, 1
	}
	if value == "" {
		return nil, nil //nolint:nilnil // from where the stream begins
	}
	n, err := strconv.ParseUint(value, 10, 53)
	if err != nil {
		return nil, malformed("/"+parameter, "is not a number of an event")
	}
	n += plus
	return &n, nil
}

// stream writes events until they are over, the client is gone or too slow, the token
// ends, or the gateway closes.
func (c *call) stream(watch func(context.Context) (<-chan struct{}, func(), error),
	first func(context.Context) (over bool, err error), read func(context.Context, *stream) (over bool, err error),
) {
	ctx, cancel := c.untilExpiry()
	defer cancel()
	changed, stop, err := watch(ctx)
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	defer stop()
	s := &stream{c: c, out: http.NewResponseController(c.w)}
	over, err := first(ctx)
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	if over { // nothing comes any more
		c.w.WriteHeader(http.StatusNoContent) // an EventSource does not come back
		return
	}
	c.w.Header().Set("Content-Type", eventsType)
	s.out.SetReadDeadline(time.Time{}) //nolint:errcheck // of a connection that has a deadline
	if s.write(": "+api.ServiceName+"\n\n") != nil || c.r.Method == http.MethodHead {
		return
	}
	idle := time.NewTicker(commentWait)
	defer idle.Stop()
	for {
		over, err := read(ctx, s)
		switch {
		case over:
			return
		case retryable(err):
			if background.Pause(ctx, retryWait) != nil {
				return
			}
			continue
		case err != nil:
			return
		}
		for quiet := true; quiet; {
			select {
			case <-changed:
				quiet = false
			case <-idle.C:
				c.g.o.Feeds.Seen(c.pass.Agent)
				if s.write(":\n\n") != nil {
					return
				}
			case <-ctx.Done():
				return
			case <-c.pass.Removed:
				return
			case <-c.g.ending:
				return
			}
		}
	}
}

// untilExpiry is the request's context until the token expires.
func (c *call) untilExpiry() (context.Context, context.CancelFunc) {
	if c.pass.Expires.IsZero() {
		return context.WithCancel(c.r.Context())
	}
	return context.WithDeadline(c.r.Context(), c.pass.Expires)
}

func retryable(err error) bool {
	refusal, is := errors.AsType[*session.Refusal](err)
	return is && (refusal.Code == session.Unavailable || refusal.Code == session.RateLimited)
}

// write writes events and sends them.
func (s *stream) write(text string) error {
	if err := s.out.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	if _, err := s.c.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.out.Flush()
}

// message is an event with an id; JSON on the wire has neither LF nor CR, which end a line of a stream.
func message(id uint64, data []byte) string {
	return fmt.Sprintf("event: message\nid: %d\ndata: %s\n\n", id, data)
}

// sessionEvents are those of one session.
type sessionEvents struct {
	*sessionReader
}

func (e sessionEvents) read(ctx context.Context, s *stream) (over bool, err error) {
	return e.sessionReader.read(ctx, func(changed *stateChange, entry received, data jsontext.Value) error {
		text := message(entry.Sequence, data)
		if changed != nil {
			change, err := json.Marshal(changed, json.Deterministic(true))
			if err != nil {
				return err
			}
			// It comes before the entry and has no id: who resumes hears it again rather than not at all.
			text = "event: session_state\ndata: " + string(change) + "\n\n" + text
		}
		return s.write(text)
	})
}

// inboxEvents are those of all sessions of a principal.
type inboxEvents struct {
	c    *call
	next *uint64 // cursor
}

func (i *inboxEvents) first(ctx context.Context) (over bool, err error) {
	if i.next != nil {
		return false, nil
	}
	var page api.InboxPage
	err = i.c.ask(ctx, api.InboxMessages.Verb, api.ListInbox{}, &page)
	i.next = &page.Cursor
	return false, err
}

func (i *inboxEvents) read(ctx context.Context, s *stream) (over bool, err error) {
	for {
		var page api.InboxPage
		if err := i.c.ask(ctx, api.InboxMessages.Verb, api.ListInbox{Since: i.next, Limit: eventPage}, &page); err != nil {
			return false, err
		}
		var events strings.Builder
		for n, m := range page.Messages {
			events.WriteString(message(m.Cursor, m.Envelope))
			if events.Len() < writeAtOnce && n < len(page.Messages)-1 {
				continue
			}
			if err := s.write(events.String()); err != nil {
				return false, err
			}
			events.Reset()
		}
		*i.next = page.Cursor
		if !page.More {
			return false, nil
		}
	}
}
