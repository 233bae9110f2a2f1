package mcpgateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/internal/background"
	act "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

var waitInput = closed(object{
	"sessionId?": text("wait in this session only"),
	"since?":     object{"type": []any{"string", "integer"}, "description": "the cursor of an answer before: what it brought does not come again; by default that of your newest answer"},
	"seconds?":   number("how long to wait, by default 50", 0, int(api.LongestWait.Seconds())),
})

// What wait_for_turn waited for.
const (
	waitTurn = "turn"
	waitNews = "news"
	waitOver = "over"
	waitNone = "none"
)

var waitOutput = properties(object{
	"status": enum("turn: a turn waits for you. news: the session went on. over: it has ended. none: nothing happened; call again",
		waitTurn, waitNews, waitOver, waitNone),
	"cursor":     text("since of the next call"),
	"sessionId?": text(""), "mode?": text(""), "state?": text(""), "onBehalfOf?": text("whose turn it is, if not yours"),
	"referenceId?": text("what waits for your answer"), "counterpartyAct?": text(""), "deadline?": text("when the session ends if nobody answers"),
	"entries?": list(entrySchema), "private?": object{"description": "what your side alone may know"},
	"escalation?": object{"type": "object", "description": "the newest escalation, with its ruling"},
	"allowed?":    list(text("a tool that is allowed now")), "next?": properties(object{"tool": text(""), "arguments": object{"type": "object"}, "why?": text("")}),
	"truncated?": object{"type": "boolean", "description": "there are more entries; get_transcript has them"},
})

// A waited is the result of wait_for_turn.
type waited struct {
	Status     string              `json:"status"`
	Cursor     api.Cursor          `json:"cursor"`
	Session    act.SessionID       `json:"sessionId,omitzero"`
	Mode       string              `json:"mode,omitzero"`
	State      string              `json:"state,omitzero"`
	OnBehalfOf act.Agent           `json:"onBehalfOf,omitzero"`
	Reference  string              `json:"referenceId,omitzero"`
	Act        string              `json:"counterpartyAct,omitzero"`
	Deadline   string              `json:"deadline,omitzero"`
	Entries    []entry             `json:"entries,omitzero"`
	Private    jsontext.Value      `json:"private,omitzero"`
	Escalation *api.EscalationView `json:"escalation,omitzero"`
	Allowed    []string            `json:"allowed,omitzero"`
	Next       *next               `json:"next,omitzero"`
	Truncated  bool                `json:"truncated,omitzero"`
}

// wait waits for a turn.
func (c *call) wait(ctx context.Context, args jsontext.Value) (result, error) {
	var q struct {
		Session act.SessionID `json:"sessionId"`
		Since   api.Cursor    `json:"since"`
		Seconds *float64      `json:"seconds"`
	}
	if err := read(args, &q); err != nil {
		return result{}, err
	}
	left := api.LongestWait
	if q.Seconds != nil {
		left = time.Duration(*q.Seconds * float64(time.Second))
	}
	found, err := c.await(ctx, q.Session, q.Since, left)
	if err != nil {
		return result{}, err
	}
	return c.found(ctx, found, q.Session)
}

// await waits for what comes after a cursor, in a session or in any. If the broker restarts
// meanwhile, it or another of the installation answers the rest.
func (c *call) await(ctx context.Context, id act.SessionID, since api.Cursor, left time.Duration) (found api.WaitedTurn, err error) {
	until := time.Now().Add(left)
	for {
		first := since == ""
		found, err = ask(ctx, c, api.TurnWait, api.WaitTurn{Session: id, Since: since, Seconds: max(0, time.Until(until)).Seconds(), Worker: c.Worker()})
		switch {
		case ctx.Err() != nil:
			return found, session.Busy()
		case err == gateway.ErrEnding: //nolint:errorlint // not any that is unavailable
			return api.WaitedTurn{Nothing: true, Cursor: since}, nil
		case err == nil:
			if since = found.Cursor; found.Nothing && time.Until(until) > retryWait { // the broker was about to stop
				break
			}
			if now := found.Snapshot; first && id != "" && now != nil && len(now.News) == 0 && !now.State.Over() && (now.Waiting == nil || !now.Waiting.Yours) {
				continue // it shows the session as it is; what is asked for is what comes
			}
			return found, nil
		case !errors.Is(err, &session.Refusal{Code: session.Unavailable}) || time.Until(until) <= 0:
			return found, err
		}
		if err := background.Pause(ctx, retryWait); err != nil {
			return found, session.Busy()
		}
	}
}

// maxShown is how many entries wait_for_turn shows.
const maxShown = 20

// found is what a wait found, with all that its caller needs to answer.
func (c *call) found(ctx context.Context, found api.WaitedTurn, id act.SessionID) (result, error) {
	w := waited{Status: waitNone, Cursor: found.Cursor, Session: id}
	now := found.Snapshot
	if now == nil {
		args := map[string]any{"since": found.Cursor}
		if id != "" {
			args["sessionId"] = id
		}
		w.Next = &next{api.TurnWait.Tool, args, "nothing happened yet: call it again"}
		return result{value: w}, nil
	}
	w.Session, w.Mode, w.State, w.OnBehalfOf, w.Private = now.Session, now.Mode, now.State.String(), now.You.OnBehalfOf, now.Private
	w.Allowed = toolsFor(now.Moves)
	switch {
	case now.State.Over():
		w.Status, w.Allowed = waitOver, nil
	case now.Waiting != nil && now.Waiting.Yours:
		w.Status, w.Deadline = waitTurn, now.Waiting.Deadline
	default:
		w.Status = waitNews
	}
	for _, item := range now.Open {
		if w.Status == waitTurn && w.Reference == "" && waitsFor(item, now.You) {
			w.Reference = item.ID
		}
	}
	if len(now.Others) == 0 { // it has yet to accept a delegation
		return result{value: w, text: w.text()}, nil
	}
	view, err := ask(ctx, c, api.SessionGet, api.GetSession{Session: now.Session})
	if err != nil {
		return result{}, err
	}
	w.Escalation = view.Escalation
	if len(now.News) == 0 {
		from := now.Head.N + 1 - min(now.Head.N+1, maxShown)
		page, err := ask(ctx, c, api.SessionMessages, api.ListMessages{Session: now.Session, Since: from, Limit: maxShown})
		if err != nil {
			return result{}, err
		}
		now.News, now.Sealed, w.Truncated = page.Messages, page.Sealed, from > 0
	}
	if w.Entries, err = c.entries(api.Messages{Messages: now.News, Sealed: now.Sealed}); err != nil {
		return result{}, err
	}
	if n := len(w.Entries); n > maxShown {
		w.Entries, w.Truncated = w.Entries[n-maxShown:], true
	}
	c.showsEntries(now.Session, w.Entries)
	for _, e := range w.Entries {
		if e.From != c.Agent() {
			w.Act = e.Performative
		}
	}
	return result{value: w, text: w.text()}, nil
}

// text is how a model reads it.
func (w waited) text() string {
	var b strings.Builder
	switch w.Status {
	case waitTurn:
		fmt.Fprintf(&b, "A turn waits for you in session %s (%s, %s).", w.Session, w.Mode, w.State)
		if w.Deadline != "" {
			fmt.Fprintf(&b, " Answer before %s.", w.Deadline)
		}
		if w.Reference != "" {
			fmt.Fprintf(&b, " referenceId: %s", spelt(quoted(w.Reference)))
		}
	case waitOver:
		fmt.Fprintf(&b, "Session %s is over (%s).", w.Session, w.State)
	default:
		fmt.Fprintf(&b, "Session %s went on (%s, %s).", w.Session, w.Mode, w.State)
	}
	if e := w.Escalation; e != nil {
		fmt.Fprintf(&b, "\nEscalation %s: %s", e.ID, e.Status)
		if e.DecidedBy != "" {
			fmt.Fprintf(&b, ", decided by %s", e.DecidedBy)
		}
	}
	if len(w.Allowed) > 0 {
		fmt.Fprintf(&b, "\nTools that are allowed: %s", strings.Join(w.Allowed, ", "))
	}
	if len(w.Entries) > 0 {
		b.WriteString("\n" + notice + "\n")
		for _, e := range w.Entries {
			b.WriteString(e.quoted())
		}
	}
	return b.String()
}
