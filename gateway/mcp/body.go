package mcpgateway

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	act "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
)

// body is what a move says. It depends on what it refers to and on the arguments, not on where the
// session is, so that a repeat says the same.
func (q *chosen) body(p act.Performative, m api.Move, now *api.Snapshot) (map[string]jsontext.Value, error) {
	if len(q.Terms) > 0 && !slices.Contains([]act.Performative{act.Propose, act.Counter, act.Commit}, p) {
		return nil, unreadable(&act.Malformed{Path: "/terms", Why: "are no part of " + q.Action + ": counter offers other terms"})
	}
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
	if len(q.Fills) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, body); err != nil {
		return nil //nolint:nilerr // what says it is refused for that
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
