package httpgateway

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
)

const (
	eventsType  = "text/event-stream"
	commentWait = 15 * time.Second // between comments on a stream that is idle
	writeAtOnce = 64 << 10         // bytes
	comment     = ": " + api.ServiceName + "\n"
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
		c.refuse(err)
		return
	}
	e := &sessionReader{c: c, seen: c.r.Header.Get("Last-Event-ID") != ""}
	if from != nil {
		e.from = *from
	}
	c.stream(e)
}

// inboxEvents serves what arrives in all of the caller's sessions.
func (c *call) inboxEvents() {
	from, err := c.resume("cursor")
	if err != nil {
		c.refuse(err)
		return
	}
	if from != nil && c.r.Header.Get("Last-Event-ID") == "" {
		*from++ // a cursor is the id of the last event that was seen, too
	}
	c.stream(&inboxEvents{c: c, from: from})
}

// resume is where a stream goes on: after Last-Event-ID, or at the parameter.
func (c *call) resume(parameter string) (*uint64, error) {
	for _, name := range slices.Sorted(maps.Keys(c.r.URL.Query())) {
		if name != parameter {
			return nil, unknownParameter(name, c.route.parameters())
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

// A source is what a stream has its events of.
type source interface {
	open(ctx context.Context) (changed <-chan struct{}, stop func(), over bool, err error)
	send(ctx context.Context, s *stream) (over bool, err error)
}

// stream writes events until they are over, the client is gone or too slow, the token
// ends, or the gateway closes.
func (c *call) stream(of source) {
	leave, err := c.EnterStream(c.r.Context())
	if err != nil {
		c.refuse(err)
		return
	}
	defer leave()
	ctx, cancel := c.Until(c.r.Context())
	defer cancel()
	changed, stop, over, err := of.open(ctx)
	if err != nil {
		c.refuse(err)
		return
	}
	defer stop()
	if over { // nothing comes any more
		c.w.WriteHeader(http.StatusNoContent) // an EventSource does not come back
		return
	}
	s := &stream{c: c, out: http.NewResponseController(c.w)}
	c.w.Header().Set("Content-Type", eventsType)
	s.out.SetReadDeadline(time.Time{}) //nolint:errcheck // of a connection that has a deadline
	if s.write(comment) != nil || c.r.Method == http.MethodHead {
		return
	}
	idle := time.NewTicker(commentWait)
	defer idle.Stop()
	for {
		if over, err := of.send(ctx, s); over || err != nil {
			return
		}
		for quiet := true; quiet; {
			select {
			case <-changed:
				quiet = false
			case <-idle.C:
				c.g.service.Seen(c.Agent)
				if s.write(comment) != nil {
					return
				}
			case <-ctx.Done():
				return
			case <-c.g.ending:
				return
			}
		}
	}
}

// write writes events and sends them.
func (s *stream) write(text string) error {
	if _, err := s.c.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.out.Flush()
}

// message is an event with an id; JSON on the wire has neither LF nor CR, which end a line of a stream.
func message(id uint64, data []byte) string {
	return fmt.Sprintf("event: message\nid: %d\ndata: %s\n\n", id, data)
}

// send writes the entries that are there.
func (r *sessionReader) send(ctx context.Context, s *stream) (over bool, err error) {
	return r.read(ctx, func(changed *stateChange, e gateway.Entry) error {
		text := message(e.Sequence, e.JSON)
		if changed != nil {
			change, err := json.Marshal(changed, json.Deterministic(true))
			if err != nil {
				return err
			}
			// It comes before the entry and has no id: who resumes gets it again rather than not at all.
			text = "event: session_state\ndata: " + string(change) + "\n\n" + text
		}
		return s.write(text)
	})
}

// inboxEvents are those of all sessions of a principal.
type inboxEvents struct {
	c    *call
	from *uint64 // cursor; nil is from now on
	feed *gateway.InboxFeed
}

func (i *inboxEvents) open(ctx context.Context) (changed <-chan struct{}, stop func(), over bool, err error) {
	if i.feed, err = i.c.FollowInbox(ctx, i.from); err != nil {
		return nil, nil, false, err
	}
	return i.feed.Changed, i.feed.Close, false, nil
}

func (i *inboxEvents) send(ctx context.Context, s *stream) (over bool, err error) {
	return false, i.feed.Read(ctx, func(page []api.InboxMessage) error {
		var events strings.Builder
		for n, m := range page {
			events.WriteString(message(m.Cursor, m.Envelope))
			if events.Len() < writeAtOnce && n < len(page)-1 {
				continue
			}
			if err := s.write(events.String()); err != nil {
				return err
			}
			events.Reset()
		}
		return nil
	})
}
