package mcpgateway

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	act "github.com/parley-asp/parley/performatives"
)

// A chosen is what respond_to_negotiation takes.
type chosen struct {
	ID        act.SessionID             `json:"negotiationId"`
	Action    string                    `json:"action"`
	Reference string                    `json:"referenceId"`
	Terms     map[string]jsontext.Value `json:"terms"`
	Message   string                    `json:"message"`
	Reason    string                    `json:"reason"`
	Fills     map[string]jsontext.Value `json:"fills"`
	Reasoning string                    `json:"reasoning"`
	Roles     jsontext.Value            `json:"suggestedRoles"`
	IfHead    act.Hash                  `json:"ifHead"`
	Seconds   float64                   `json:"seconds"`
	Key       string                    `json:"idempotencyKey"`
}

// A moved is what came of a move.
type moved struct {
	Success bool `json:"success"` // true
	api.Acceptance
	ID        act.SessionID `json:"negotiationId"`
	Action    string        `json:"action"`
	Reference string        `json:"referenceId,omitzero"` // what later acts call it
	Now       *view         `json:"now,omitzero"`         // after the answer
	Next      *next         `json:"next,omitzero"`
}

// move says a move. What has an assessment, and nothing that Index's tool does not take, is taken
// as that tool takes it.
func (c *call) move(ctx context.Context, args jsontext.Value) (result, error) {
	var q chosen
	if err := read(args, &q); err != nil {
		return result{}, err
	}
	if q.indexed() {
		return c.respond(ctx, args)
	}
	p, known := actionOf(q.Action)
	if !known {
		return result{}, unreadable(&act.Malformed{Path: "/action", Why: "is no move; get_negotiation lists the moves"})
	}
	last := c.lastSeen(q.ID)
	now, err := ask(ctx, c, api.SessionSnapshot, api.GetSnapshot{Session: q.ID})
	if err != nil {
		return result{}, err
	}
	if _, asks := q.Fills["subject"]; p == act.Clarify && !strings.EqualFold(q.Action, p.String()) && (asks || !slices.Contains(actionsOf(now.Moves), "clarify")) {
		p = act.Query // to ask is also to ask about nothing that was offered
	}
	m, err := q.choose(p, &now)
	if err != nil {
		return result{}, err
	}
	if q.Reference == "" && q.IfHead == "" && q.Fills["referenceId"] == nil && m.Reference != "" && gateway.Answers(p) {
		if err := c.unseen(ctx, &now, m.Reference, last); err != nil {
			return result{}, err
		}
	}
	body, err := q.body(p, m, &now)
	if err != nil {
		return result{}, err
	}
	s, err := c.say(ctx, addressed{Session: q.ID, To: m.Recipient, Key: q.Key, IfHead: q.IfHead}, p, body)
	if err != nil {
		return result{}, err
	}
	done, err := c.after(ctx, s, q.Seconds)
	done.Action = strings.ToLower(p.String())
	return result{value: done}, err
}

// indexed reports whether a turn is taken as Index's agents take it.
func (q *chosen) indexed() bool {
	return len(q.Roles) > 0 && q.Reference == "" && q.Reason == "" && len(q.Fills) == 0 && q.IfHead == "" && q.Key == "" && q.Seconds == 0 &&
		slices.Contains([]string{"propose", "counter", "accept", "reject", "question"}, q.Action)
}

// after is what came of an act that was accepted, with the answer to it if it comes in time. It
// was said: what cannot be read now is left out.
func (c *call) after(ctx context.Context, s said, seconds float64) (moved, error) {
	since := s.Sequence + 1
	m := moved{Success: true, Acceptance: s.Acceptance, ID: s.Session, Reference: s.Reference}
	if s.State.Over() {
		return m, nil
	}
	m.Next = c.wakeup(s.Session, since, "to hear the answer")
	if seconds > 0 {
		v, err := c.viewNext(ctx, s.Session, api.Cursor(strconv.FormatUint(since, 10)), time.Duration(seconds*float64(time.Second)))
		if err == nil && v.Status != waitNone {
			m.Now, m.Next = &v, nil
		}
	}
	return m, nil
}

// choose finds the move of an act. Without a referenceId it is the one that the caller has, or the
// one that answers what waits for the caller. An act that is no move is left to the broker to refuse.
func (q *chosen) choose(p act.Performative, now *api.Snapshot) (api.Move, error) {
	about, fits := []string{}, func(m api.Move) bool {
		named := actionNamed(m)
		return m.Performative == p.String() && (named == strings.ToLower(q.Action) || named == strings.ToLower(m.Performative) && !q.carriesOut())
	}
	for _, m := range now.Moves {
		if fits(m) && m.Reference != "" && !slices.Contains(about, m.Reference) {
			about = append(about, m.Reference)
		}
	}
	reference := q.Reference
	if reference == "" && len(about) > 1 {
		waits := slices.DeleteFunc(slices.Clone(about), func(id string) bool {
			return !slices.ContainsFunc(now.Open, func(o api.OpenItem) bool {
				return o.ID == id && waitsFor(o, now.You)
			})
		})
		if len(waits) != 1 {
			return api.Move{}, unreadable(&act.Malformed{Path: "/referenceId", Why: "says which: " + strings.Join(about, ", ")})
		}
		about = waits
	}
	if reference == "" && len(about) == 1 && (p != act.Inform || q.carriesOut() || len(q.Fills) == 0 || q.answers(now, about[0])) {
		reference = about[0]
	}
	if reference == "" && gateway.Answers(p) && q.Fills["referenceId"] == nil { // it will be refused, for the right reason
		for _, o := range slices.Backward(now.Open) {
			if o.By != now.You.Agent && o.By != now.You.OnBehalfOf && slices.Contains(gateway.Offered, o.Kind) {
				reference = o.ID
				break
			}
		}
	}
	if q.Key != "" && q.Reference == "" && reference != "" {
		return api.Move{}, unreadable(&act.Malformed{Path: "/referenceId", Why: "is given where an idempotencyKey is, so that a repeat says the same: " + reference})
	}
	if reference == "" && gateway.Answers(p) && q.Fills["referenceId"] == nil {
		var err error
		if reference, err = gateway.NothingWaits(p, now); err != nil {
			return api.Move{}, err
		}
	}
	for _, m := range now.Moves {
		if fits(m) && m.Reference == reference {
			return m, nil
		}
	}
	if q.carriesOut() { // which needs the body of the move
		return api.Move{}, unreadable(&act.Malformed{Path: "/action", Why: "is no move now; get_negotiation lists the moves"})
	}
	return api.Move{Performative: p.String(), Reference: reference}, nil
}

// carriesOut reports whether the action carries out what was agreed.
func (q *chosen) carriesOut() bool {
	return slices.Contains(slices.Collect(maps.Values(carriedOut)), strings.ToLower(q.Action))
}

// answers reports whether the fills are some of a move that answers.
func (q *chosen) answers(now *api.Snapshot, reference string) bool {
	return slices.ContainsFunc(now.Moves, func(m api.Move) bool {
		return m.Performative == act.Inform.String() && m.Reference == reference && slices.ContainsFunc(m.Fill, func(path string) bool { return q.Fills[path] != nil })
	})
}
