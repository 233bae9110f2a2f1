package httpgateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

const (
	eventsType  = "text/event-stream"
	commentWait = 15 * time.Second       // between comments on a stream that is idle
	writeWithin = 10 * time.Second       // or the reader is too slow, and resumes on another connection
	retryWait   = 250 * time.Millisecond // after a reading that was refused for now
	eventPage   = 100
)

// A stream is an open SSE response. It holds no queue: it reads what is stored when it is
// told of something new, so a slow reader costs nothing but its connection.
type stream struct {
	c   *call
	ctx context.Context //nolint:containedctx // the request's, until the token ends
	out *http.ResponseController
}

// events serves a session's entries as they are accepted.
func (c *call) events() {
	s := &sessionEvents{c: c}
	from, err := c.resume("since_sequence")
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	s.next = from
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
		value, plus = last, 1
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
func (c *call) stream(watch func(context.Context) (<-chan struct{}, func(), error), first, read func(context.Context, *stream) (over bool, err error)) {
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	if !c.pass.Expires.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, c.pass.Expires)
		defer cancel()
	}
	changed, stop, err := watch(ctx)
	if err != nil {
		c.g.refuse(c.w, err)
		return
	}
	defer stop()
	s := &stream{c: c, ctx: ctx, out: http.NewResponseController(c.w)}
	over, err := first(ctx, s)
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
	if s.write(": "+api.ServiceName+"\n\n") != nil {
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

// message is an event with an id; JSON on the wire has no line break.
func message(id uint64, data []byte) string {
	return fmt.Sprintf("event: message\nid: %d\ndata: %s\n\n", id, data)
}

// call calls a verb for the stream.
func (s *stream) call(verb api.Verb, request, reply any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := s.c.g.o.Broker.CallAs(s.ctx, s.c.pass.Agent, verb.Name, data)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, reply)
}

// sessionEvents are those of one session.
type sessionEvents struct {
	c     *call
	next  *uint64 // the sequence number of the next entry
	state string  // after the entry before
}

// first finds where the stream begins; over means that the session has ended before.
func (e *sessionEvents) first(_ context.Context, s *stream) (over bool, err error) {
	if e.next == nil {
		e.next = new(uint64)
	}
	var page api.Messages
	request := api.ListMessages{Session: e.c.session(), Since: max(*e.next, 1) - 1, Limit: 1}
	if err := s.call(api.SessionMessages.Verb, request, &page); err != nil || *e.next == 0 || len(page.Messages) == 0 {
		return false, err
	}
	entry, err := receiptOf(page.Messages[0])
	e.state = entry.Integrity.Receipt.State
	phase, _ := session.ParsePhase(e.state)
	return phase.Over(), err
}

// received is what a stream needs of an entry.
type received struct {
	Sequence  uint64 `json:"sequenceNumber"`
	Integrity struct {
		Receipt performatives.Receipt `json:"receipt"`
	} `json:"integrity"`
}

func receiptOf(entry jsontext.Value) (r received, err error) {
	return r, json.Unmarshal(entry, &r)
}

// read writes the entries that are there.
func (e *sessionEvents) read(_ context.Context, s *stream) (over bool, err error) {
	for more := true; more; {
		var page api.Messages
		if err := s.call(api.SessionMessages.Verb, api.ListMessages{Session: e.c.session(), Since: *e.next, Limit: eventPage}, &page); err != nil {
			return false, err
		}
		for _, m := range page.Messages {
			entry, err := receiptOf(m)
			if err != nil {
				return false, err
			}
			text, receipt := message(entry.Sequence, m), entry.Integrity.Receipt
			if receipt.State != e.state {
				change, err := json.Marshal(stateChange{receipt.State, e.state, receipt.AcceptedAt}, json.Deterministic(true))
				if err != nil {
					return false, err
				}
				// It comes before the entry and has no id: who resumes hears it again rather than not at all.
				text = "event: session_state\ndata: " + string(change) + "\n\n" + text
			}
			if err := s.write(text); err != nil {
				return false, err
			}
			*e.next, e.state = entry.Sequence+1, receipt.State
			if phase, _ := session.ParsePhase(e.state); phase.Over() {
				return true, nil
			}
		}
		more = page.Next != nil
	}
	return false, nil
}

// A stateChange is the data of session_state.
type stateChange struct {
	State    string `json:"state"`
	Previous string `json:"previous,omitzero"`
	At       string `json:"timestamp"`
}

// inboxEvents are those of all sessions of a principal.
type inboxEvents struct {
	c    *call
	next *uint64 // cursor
}

func (i *inboxEvents) first(_ context.Context, s *stream) (over bool, err error) {
	if i.next != nil {
		return false, nil
	}
	var page api.InboxPage
	err = s.call(api.InboxMessages.Verb, api.ListInbox{}, &page)
	i.next = &page.Cursor
	return false, err
}

func (i *inboxEvents) read(_ context.Context, s *stream) (over bool, err error) {
	for {
		var page api.InboxPage
		if err := s.call(api.InboxMessages.Verb, api.ListInbox{Since: i.next, Limit: eventPage}, &page); err != nil {
			return false, err
		}
		for _, m := range page.Messages {
			if err := s.write(message(m.Cursor, m.Envelope)); err != nil {
				return false, err
			}
		}
		*i.next = page.Cursor
		if !page.More {
			return false, nil
		}
	}
}
