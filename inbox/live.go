package inbox

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// round is the interval of keep-alives, shorter than the idle timeout of most proxies.
const round = 15 * time.Second

// A change tells a browser which items have changed, and which sessions the human
// takes part in.
type change struct {
	Changed  []string                  `json:"changed"`
	Sessions []performatives.SessionID `json:"sessions,omitzero"`
	Reset    bool                      `json:"reset,omitzero"` // reload everything
	Now      time.Time                 `json:"now"`
}

// A cursor is where live updates start: of the escalation inbox, and in the human's
// own inbox.
type cursor struct {
	items string
	inbox uint64
}

func (c cursor) String() string { return c.items + "." + strconv.FormatUint(c.inbox, 10) }

// parseCursor reads a cursor; ok is false for none.
func parseCursor(s string) (c cursor, ok bool) {
	items, inbox, _ := strings.Cut(s, ".")
	at, err := strconv.ParseUint(inbox, 10, 64)
	return cursor{items, at}, err == nil && items != ""
}

// cursor returns where live updates start for a page that is about to be rendered.
func (i *Inbox) cursor(ctx context.Context, who *person) (cursor, error) {
	now, err := ask(ctx, i, who.Agent, api.EscalationWatch, api.WatchEscalations{})
	if err != nil {
		return cursor{}, err
	}
	inbox, err := ask(ctx, i, who.Agent, api.InboxMessages, api.ListInbox{})
	return cursor{now.Cursor, inbox.Cursor}, err
}

// follow sends changes as server-sent events until the browser disconnects. It starts
// at the page's cursor, or where the previous connection was lost.
func (i *Inbox) follow(w http.ResponseWriter, r *http.Request, who *person) {
	leave, err := i.Service.As(who.Agent).EnterStream(r.Context())
	if err != nil {
		i.answer(w, r, nil, err)
		return
	}
	defer leave()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	go func() {
		select {
		case <-i.ending:
			stop()
		case <-ctx.Done():
		}
	}()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // or a proxy buffers it
	out := http.NewResponseController(w)
	if out.SetReadDeadline(time.Time{}) != nil { // it reads nothing more, and stays open
		return
	}
	send := func(text string) bool {
		_, err := w.Write([]byte(text))
		return err == nil && out.Flush() == nil
	}
	if !send(": following\n") {
		return
	}
	at, resumes := parseCursor(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("since")))
	if !resumes {
		var err error
		if at, err = i.cursor(ctx, who); err != nil {
			return
		}
	}
	changes := make(chan news)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	for _, watch := range []func(context.Context, *person, cursor, chan<- news) error{i.watchItems, i.watchInbox} {
		work.Go(func() {
			defer stop()
			if err := watch(ctx, who, at, changes); err != nil && ctx.Err() == nil {
				i.Log.Debug("inbox: live updates end", zap.Error(err))
			}
		})
	}
	for {
		select {
		case <-ctx.Done():
			return // the browser reconnects and learns why
		case n := <-changes:
			n.advance(&at)
			n.Now = i.Now()
			data, err := json.Marshal(n.change)
			if err != nil || !send("id: "+at.String()+"\ndata: "+string(data)+"\n\n") {
				return
			}
		}
		if _, err := i.visitor(r); err != nil {
			return
		}
	}
}

// news is a change, and how it advances the cursor.
type news struct {
	change
	advance func(*cursor)
}

// watchItems sends the items that change, and something each round.
func (i *Inbox) watchItems(ctx context.Context, who *person, at cursor, to chan<- news) error {
	q := api.WatchEscalations{Since: at.items, Wait: round.Milliseconds()}
	for {
		seen, err := ask(ctx, i, who.Agent, api.EscalationWatch, q)
		if err != nil {
			return err
		}
		q.Since = seen.Cursor
		n := news{change{Changed: []string{}, Reset: seen.Reset}, func(c *cursor) { c.items = seen.Cursor }}
		for k := range seen.Changed {
			n.Changed = append(n.Changed, string(seen.Changed[k].ID))
		}
		select {
		case to <- n:
		case <-ctx.Done():
			return nil
		}
	}
}

// watchInbox sends the sessions in which something happens.
func (i *Inbox) watchInbox(ctx context.Context, who *person, at cursor, to chan<- news) error {
	changed, stop, err := i.Service.WatchInbox(ctx, who.Agent)
	if err != nil {
		return err
	}
	defer stop()
	for next := at.inbox; ; {
		page, err := ask(ctx, i, who.Agent, api.InboxMessages, api.ListInbox{Since: &next})
		if err != nil {
			return err
		}
		next = page.Cursor
		if n := (news{change{Changed: []string{}, Sessions: sessionsOf(page)}, func(c *cursor) { c.inbox = page.Cursor }}); len(n.Sessions) > 0 {
			select {
			case to <- n:
			case <-ctx.Done():
				return nil
			}
		}
		if page.More {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// sessionsOf are the sessions of a page of messages.
func sessionsOf(page api.InboxPage) (found []performatives.SessionID) {
	for _, m := range page.Messages {
		var of struct {
			Session performatives.SessionID `json:"sessionId"`
		}
		if json.Unmarshal(m.Envelope, &of) == nil && !slices.Contains(found, of.Session) {
			found = append(found, of.Session)
		}
	}
	return found
}
