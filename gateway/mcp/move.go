package mcpgateway

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	act "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
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
				return o.ID == id && (slices.Contains(o.For, now.You.Agent) || slices.Contains(o.For, now.You.OnBehalfOf))
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

// body is what a move says. It depends on what it refers to and on the arguments, not on where the
// session is, so that a repeat says the same.
func (q *chosen) body(p act.Performative, m api.Move, now *api.Snapshot) (map[string]jsontext.Value, error) {
	body := map[string]any{}
	if m.Reference != "" && p != act.Inform {
		body["referenceId"] = m.Reference
	}
	said := func(name, value string) {
		if value != "" {
			body[name] = value
		}
	}
	switch p {
	case act.Propose:
		body["type"], body["subject"], body["terms"] = "service-agreement", cmp.Or(now.Purpose, "offer"), q.Terms
		if q.carriesOut() {
			if err := json.Unmarshal(m.Body, &body); err != nil {
				return nil, err
			}
			body["terms"] = q.Terms
		}
		said("message", q.Message)
	case act.Counter:
		terms, err := q.countered(m, now)
		if err != nil {
			return nil, err
		}
		body["terms"] = terms
		said("message", q.Message)
		said("reason", q.Reason)
	case act.Commit:
		if q.Terms != nil {
			body["terms"] = q.Terms
		}
		said("reason", q.Reason)
	case act.Accept:
		said("message", q.Message)
		said("reason", q.Reason)
	case act.Reject:
		body["code"], body["retryable"], body["reason"] = "unspecified", false, cmp.Or(q.Reason, q.Message, q.Reasoning)
		said("message", q.Message)
	case act.Clarify:
		body["questions"] = []object{{"field": "terms", "question": q.Message}}
	case act.Query:
		body["queryType"], body["subject"] = "information", q.Message
	case act.Inform:
		if err := q.informs(m, body); err != nil {
			return nil, err
		}
	case act.Observe:
		body["subject"] = q.Message
	case act.Escalate:
		body["reason"], body["urgency"], body["context"] = cmp.Or(q.Reason, "confidence-low"), "medium", q.Message
	default:
		said("reason", q.Reason)
	}
	if q.assessed(p, m, now) {
		roles := any(q.Roles)
		if len(q.Roles) == 0 {
			roles = object{"ownUser": "peer", "otherUser": "peer"}
		}
		body["assessment"] = object{"reasoning": cmp.Or(q.Reasoning, q.Reason, q.Message, q.Action), "suggestedRoles": roles}
	}
	raw, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	var filled any
	if err := json.Unmarshal(raw, &filled); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(q.Fills)) {
		var value any
		if err := json.Unmarshal(q.Fills[path], &value); err != nil {
			return nil, err
		}
		var fits bool
		if filled, fits = fill(filled, strings.Split(path, "."), value); !fits {
			return nil, unreadable(&act.Malformed{Path: "/fills", Why: "has a path that leads nowhere in the move"})
		}
	}
	if raw, err = json.Marshal(filled, json.Deterministic(true)); err != nil {
		return nil, err
	}
	if err := q.keeps(p, m, raw); err != nil {
		return nil, err
	}
	var members map[string]jsontext.Value
	return members, json.Unmarshal(raw, &members)
}

// keeps refuses fills that the act does not have: it would be said without them.
func (q *chosen) keeps(p act.Performative, m api.Move, raw jsontext.Value) error {
	body := act.NewBody(p)
	if len(q.Fills) == 0 || json.Unmarshal(raw, body) != nil { // which says why when it is said
		return nil
	}
	written, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var kept any
	if err := json.Unmarshal(written, &kept); err != nil {
		return err
	}
	takes := slices.Concat(m.Fill, optional(m))
	if len(takes) == 0 {
		members, _ := published(p.String())["properties"].(object)
		takes = slices.Sorted(maps.Keys(members))
	}
	for _, path := range slices.Sorted(maps.Keys(q.Fills)) {
		data, inData := strings.CutPrefix(path, "data.")
		member, _, _ := strings.Cut(data, ".")
		foreign := inData && q.carriesOut() && !slices.Contains(dataMembers(m), member)
		if foreign || !empty(q.Fills[path]) && !leads(kept, strings.Split(path, ".")) {
			return unreadable(&act.Malformed{Path: "/fills/" + path, Why: "is no part of the move, which takes " + strings.Join(takes, ", ")})
		}
	}
	return nil
}

// countered are the terms of a counteroffer: those of the offer, changed by those that are named.
func (q *chosen) countered(m api.Move, now *api.Snapshot) (map[string]jsontext.Value, error) {
	var of struct {
		Terms map[string]jsontext.Value `json:"terms"`
	}
	if len(m.Body) > 0 {
		if err := json.Unmarshal(m.Body, &of); err != nil {
			return nil, err
		}
	}
	for _, o := range now.Offers {
		if o.ID != m.Reference || of.Terms != nil {
			continue
		}
		if o.Truncated {
			return nil, session.Refuse(session.TooLarge, "the terms of the offer are too long to be kept here: give all of them")
		}
		if err := json.Unmarshal(o.Terms, &of.Terms); err != nil {
			return nil, err
		}
	}
	terms := of.Terms
	if terms == nil {
		terms = map[string]jsontext.Value{}
	}
	delete(terms, "assessment")
	offered := maps.Clone(terms)
	maps.Copy(terms, q.Terms)
	if maps.EqualFunc(terms, offered, gateway.SameJSON) && len(m.Body) > 0 && len(q.Fills) == 0 && now.Mode != modes.Bilateral.Name { // where a counter may be one of words
		return nil, unreadable(&act.Malformed{Path: "/terms", Why: "change nothing of " + m.Reference + ": name what you change, or accept it"})
	}
	return terms, nil
}

// informs is the body of an INFORM: an answer, where the move is one, else a message.
func (q *chosen) informs(m api.Move, body map[string]any) error {
	if len(m.Body) > 0 {
		if err := json.Unmarshal(m.Body, &body); err != nil {
			return err
		}
	}
	if q.Message == "" {
		return nil
	}
	message := quoted(q.Message)
	var answer []string
	for _, path := range m.Fill {
		limited := slices.ContainsFunc(m.Limits, func(l api.MoveLimit) bool { return l.Path == path })
		if strings.Contains(path, ".") && q.Fills[path] == nil && !limited {
			answer = append(answer, path)
		}
	}
	switch {
	case len(answer) > 0:
		if q.Fills == nil {
			q.Fills = map[string]jsontext.Value{}
		}
		for _, path := range answer {
			q.Fills[path] = message
		}
	case q.Fills["data"] == nil && !q.carriesOut():
		body["data"] = object{"message": q.Message}
	}
	if body["type"] == nil {
		body["type"] = act.Fact
	}
	return nil
}

// assessed reports whether an act carries an assessment.
func (q *chosen) assessed(p act.Performative, m api.Move, now *api.Snapshot) bool {
	switch p {
	case act.Propose, act.Counter, act.Accept, act.Reject, act.Clarify:
	default:
		return false
	}
	offered := p == act.Propose || slices.ContainsFunc(now.Offers, func(o api.SnapshotOffer) bool { return o.ID == m.Reference })
	return offered && (now.Mode == modes.Bilateral.Name || q.Reasoning != "" || len(q.Roles) > 0)
}
