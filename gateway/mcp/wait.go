package mcpgateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	act "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// longest is how long wait_for_turn waits: clients give up after a minute.
const longest = 50 * time.Second

var waitInput = closed(object{
	"sessionId?": text("wait in this session only; its end answers too"),
	"since?":     number("with sessionId: an entry at this sequenceNumber or after answers too", 0, 1<<53-1),
	"seconds?":   number("how long to wait, by default 50", 0, 50),
})

var waitOutput = properties(object{
	"status": enum("turn: a turn waits for you. news: the session went on. over: it has ended. none: nothing happened; call again",
		api.WaitTurnWaits, api.WaitNews, api.WaitOver, api.WaitNone),
	"sessionId?": text(""), "mode?": text(""), "state?": text(""), "onBehalfOf?": text("whose turn it is, if not yours"),
	"referenceId?": text("what waits for your answer"), "counterpartyAct?": text(""),
	"turn?":    properties(object{"number": object{"type": "integer"}, "cap?": object{"type": "integer"}, "deadline": text("")}),
	"entries?": list(entrySchema), "private?": object{"description": "what your side alone may know"},
	"escalation?": object{"type": "object", "description": "the newest escalation, with its ruling"},
	"allowed?":    list(text("a tool that is allowed now")), "next?": properties(object{"tool": text(""), "arguments": object{"type": "object"}, "why?": text("")}),
	"truncated?": object{"type": "boolean", "description": "there are more entries; get_transcript has them"},
})

// A waited is the result of wait_for_turn.
type waited struct {
	Status     string              `json:"status"`
	Session    act.SessionID       `json:"sessionId,omitzero"`
	Mode       string              `json:"mode,omitzero"`
	State      string              `json:"state,omitzero"`
	OnBehalfOf act.Agent           `json:"onBehalfOf,omitzero"`
	Reference  string              `json:"referenceId,omitzero"`
	Act        string              `json:"counterpartyAct,omitzero"`
	Turn       *api.TurnNumber     `json:"turn,omitzero"`
	Entries    []entry             `json:"entries,omitzero"`
	Private    jsontext.Value      `json:"private,omitzero"`
	Escalation *api.EscalationView `json:"escalation,omitzero"`
	Allowed    []string            `json:"allowed,omitzero"`
	Next       *next               `json:"next,omitzero"`
	Truncated  bool                `json:"truncated,omitzero"`
}

// An awaited turn is what wait_for_turn waits for.
type awaited struct {
	Session act.SessionID `json:"sessionId"`
	Since   *uint64       `json:"since"`
	Seconds *float64      `json:"seconds"`
}

// again waits for the same.
func (q awaited) again() *next {
	args := map[string]any{}
	if q.Session != "" {
		args["sessionId"] = q.Session
	}
	if q.Since != nil {
		args["since"] = *q.Since
	}
	return &next{api.TurnWait.Tool, args, "nothing happened yet: call it again"}
}

// wait waits for a turn. It asks the broker for as long as the broker lets it wait, then again:
// one that restarts meanwhile, or another of the installation, answers the rest.
func (c *call) wait(ctx context.Context, args jsontext.Value) (result, error) {
	var q awaited
	if err := read(args, &q); err != nil {
		return result{}, err
	}
	left := longest
	if q.Seconds != nil {
		left = time.Duration(*q.Seconds * float64(time.Second))
	}
	until := time.Now().Add(left)
	for {
		left = max(0, time.Until(until))
		found, err := ask(ctx, c, api.TurnWait, api.WaitTurn{Session: q.Session, Since: q.Since, Wait: min(left, api.LongestWait).Milliseconds()})
		switch {
		case err == nil && found.Status != api.WaitNone:
			return c.found(ctx, found, q.Session, q.Since)
		case ctx.Err() != nil:
			return result{}, session.Busy()
		case err == nil && left > 0:
			continue
		case err == nil:
			return result{value: waited{Status: api.WaitNone, Session: q.Session, Next: q.again()}}, nil
		case !errors.Is(err, &session.Refusal{Code: session.Unavailable}) || left == 0:
			return result{}, err
		}
		if err := background.Pause(ctx, retryWait); err != nil {
			return result{}, session.Busy()
		}
	}
}

// maxShown is how many entries wait_for_turn shows.
const maxShown = 20

// found is what a wait found, with all that its caller needs to answer.
func (c *call) found(ctx context.Context, found api.WaitedTurn, id act.SessionID, since *uint64) (result, error) {
	w := waited{Status: found.Status, Session: id}
	var view *api.SessionView
	if t := found.Turn; t != nil {
		w.Session, w.Mode, w.OnBehalfOf, w.Reference, w.Act, w.Turn, w.Private = t.Session, t.Mode, t.OnBehalfOf, t.Reference, t.CounterpartyAct, t.Turn, t.Private
		w.Truncated, view = t.Truncated, t.View
		for _, e := range t.History {
			w.Entries = append(w.Entries, c.entryOf(e))
		}
	} else {
		v, err := ask(ctx, c, api.SessionGet, api.GetSession{Session: id})
		if err != nil {
			return result{}, err
		}
		view = &v
		from := uint64(0)
		if since != nil {
			from = *since
		} else if v.Head.Sequence != nil && *v.Head.Sequence >= maxShown {
			from = *v.Head.Sequence - maxShown + 1
		}
		page, err := ask(ctx, c, api.SessionMessages, api.ListMessages{Session: id, Since: from, Limit: maxShown})
		if err != nil {
			return result{}, err
		}
		if w.Entries, err = c.entries(page); err != nil {
			return result{}, err
		}
		w.Truncated = from > 0 || page.Next != nil
	}
	if n := len(w.Entries); n > maxShown {
		w.Entries, w.Truncated = w.Entries[n-maxShown:], true
	}
	if view != nil {
		w.Mode, w.State, w.Escalation = view.Mode, view.State.String(), view.Escalation
		if !view.State.Over() {
			now, err := ask(ctx, c, api.SessionSnapshot, api.GetSnapshot{Session: w.Session})
			if err != nil {
				return result{}, err
			}
			w.Allowed = toolsFor(now.Moves)
		}
	}
	return result{value: w, text: w.text()}, nil
}

// text is how a model reads it.
func (w waited) text() string {
	var b strings.Builder
	switch w.Status {
	case api.WaitTurnWaits:
		fmt.Fprintf(&b, "A turn waits for you in session %s (%s, %s).", w.Session, w.Mode, w.State)
		if w.Turn != nil {
			fmt.Fprintf(&b, " Answer before %s.", w.Turn.Deadline)
		}
		if w.Reference != "" {
			fmt.Fprintf(&b, " referenceId: %s", spelt(quoted(w.Reference)))
		}
	case api.WaitOver:
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
