package mcpgateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	act "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A said is the result of an act.
type said struct {
	api.Acceptance
	Reference string `json:"referenceId,omitzero"` // what later acts call it
	Next      *next  `json:"next,omitzero"`
}

// A next is the tool to go on with.
type next struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Why       string         `json:"why,omitzero"`
}

// act says an act whose body is the arguments.
func (c *call) act(ctx context.Context, p act.Performative, args jsontext.Value) (result, error) {
	a, body, err := address(args)
	if err != nil {
		return result{}, err
	}
	s, err := c.say(ctx, a, p, body)
	return result{value: s}, err
}

// An addressed act goes to a session.
type addressed struct {
	Session act.SessionID `json:"sessionId"` // "" opens one
	To      act.Agent     `json:"recipient"`
	Key     string        `json:"idempotencyKey"` // "" if it is not retried
	IfHead  act.Hash      `json:"-"`              // "" if it is said whatever the head is
}

// address takes from the arguments what is not the body's.
func address(args jsontext.Value) (a addressed, body map[string]jsontext.Value, err error) {
	if err := read(args, &body); err != nil {
		return a, nil, err
	}
	if err := read(args, &a); err != nil {
		return a, nil, err
	}
	if _, err := act.ParseSessionID(string(a.Session)); err != nil {
		return a, nil, session.NoSuchSession()
	}
	for _, name := range []string{"sessionId", "recipient", keyMember} {
		delete(body, name)
	}
	return a, body, nil
}

// say makes a body and submits it. An id that the sender makes is made here if it is missing,
// the same for the caller's same key in the session.
func (c *call) say(ctx context.Context, a addressed, p act.Performative, members map[string]jsontext.Value) (said, error) {
	if len(a.Key) > gateway.MaxKey {
		return said{}, unreadable(&act.Malformed{Path: "/" + keyMember, Why: fmt.Sprintf("has at most %d bytes", gateway.MaxKey)})
	}
	raw, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return said{}, err
	}
	body := act.NewBody(p)
	if err := read(raw, body); err != nil {
		return said{}, err
	}
	if named, is := body.(act.Named); is && body.ID("") == "" {
		named.SetID(strings.ToLower(p.String()) + "-" + c.unique(a))
	}
	accepted, err := c.Say(ctx, a.Session, a.Key, a.IfHead, body, a.To)
	if err != nil {
		return said{}, err
	}
	if a.Session == "" {
		c.shows(accepted.Session, accepted.Sequence)
	}
	s := said{Acceptance: accepted, Reference: body.ID(accepted.Message)}
	if !accepted.State.Over() {
		s.Next = waitNext(accepted, "to hear the answer")
	}
	return s, nil
}

// unique makes the end of an id, which a model can copy.
func (c *call) unique(a addressed) string {
	key := a.Key
	if key == "" {
		key = rand.Text()
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{string(c.Agent()), string(a.Session), key}, "\n")))
	return hex.EncodeToString(sum[:8])
}

// waitNext waits for what comes after an act.
func waitNext(accepted api.Acceptance, why string) *next {
	return &next{api.TurnWait.Tool, map[string]any{"sessionId": accepted.Session, "since": accepted.Sequence + 1}, why}
}

// question says CLARIFY or QUERY.
func (c *call) question(ctx context.Context, args jsontext.Value) (result, error) {
	a, body, err := address(args)
	if err != nil {
		return result{}, err
	}
	p := act.Query
	if _, asked := body["questions"]; asked {
		p = act.Clarify
	}
	s, err := c.say(ctx, a, p, body)
	return result{value: s}, err
}

// inform says INFORM: answers to questions about an offer, or anything else.
func (c *call) inform(ctx context.Context, args jsontext.Value) (result, error) {
	a, members, err := address(args)
	if err != nil {
		return result{}, err
	}
	var of struct {
		Reference string         `json:"referenceId,omitzero"`
		Answers   jsontext.Value `json:"answers,omitzero"`
		Type      string         `json:"type,omitzero"`
		Data      jsontext.Value `json:"data,omitzero"`
	}
	raw, err := json.Marshal(members, json.Deterministic(true))
	if err == nil {
		err = read(raw, &of)
	}
	if err != nil {
		return result{}, err
	}
	if of.Type == act.Resolution {
		return result{}, session.Refuse(session.Unauthorized, "only a human decides an escalation, in the inbox")
	}
	if len(of.Answers) == 0 && (len(of.Data) == 0 || of.Data.Kind() == 'n') {
		return result{}, session.Refuse(session.MalformedEnvelope, "answers or data say what to tell the other side")
	}
	data := map[string]jsontext.Value{}
	if len(of.Data) > 0 && json.Unmarshal(of.Data, &data) != nil {
		data = map[string]jsontext.Value{"value": of.Data}
	}
	kind := act.Result
	if len(of.Answers) > 0 {
		kind, data["answers"] = act.Fact, of.Answers
	}
	if of.Type != "" {
		kind = of.Type
	}
	if of.Reference != "" {
		data["referenceId"] = quoted(of.Reference)
	}
	body := map[string]jsontext.Value{"type": quoted(kind)}
	if body["data"], err = json.Marshal(data, json.Deterministic(true)); err != nil {
		return result{}, err
	}
	s, err := c.say(ctx, a, act.Inform, body)
	return result{value: s}, err
}

func quoted(s string) jsontext.Value {
	data, err := jsontext.AppendQuote(nil, s)
	if err != nil { // it was read from I-JSON
		return jsontext.Value(`""`)
	}
	return data
}

// keyMember is what an act is retried by, as by HTTP's Idempotency-Key.
const keyMember = "idempotencyKey"

var keySchema = text("of your making: the same call with the same key says nothing twice, and gives the first result",
	object{"maxLength": gateway.MaxKey})

// openInput is what a session is opened with: the invitation's terms, and who is invited.
func openInput() object {
	members := object{}
	schema := published(act.SessionInvitation)
	terms, _ := schema["properties"].(object)
	for name, of := range terms {
		members[name+"?"] = of
	}
	delete(members, "participants?")
	delete(members, "purpose?")
	maps.Copy(members, object{
		"with":          object{"type": "array", "minItems": 1, "items": text("agent://…")},
		"purpose":       text("what the session is for"),
		"subject?":      text("in one line; by default the purpose"),
		"validUntil?":   text("when the invitation expires", object{"format": "date-time"}),
		"context?":      object{"type": "object", "description": "what both sides should know"},
		keyMember + "?": keySchema,
	})
	return closed(members)
}

// open opens a session.
func (c *call) open(ctx context.Context, args jsontext.Value) (result, error) {
	var terms map[string]jsontext.Value
	var of struct {
		With    []act.Agent    `json:"with"`
		Purpose string         `json:"purpose"`
		Subject string         `json:"subject"`
		Until   jsontext.Value `json:"validUntil"`
		Key     string         `json:"idempotencyKey"`
	}
	if err := read(args, &terms); err != nil {
		return result{}, err
	}
	if err := read(args, &of); err != nil {
		return result{}, err
	}
	if len(of.With) == 0 {
		return result{}, unreadable(&act.Malformed{Path: "/with", Why: "names nobody"})
	}
	for _, name := range []string{"with", "subject", "validUntil", keyMember} {
		delete(terms, name)
	}
	var err error
	if terms["participants"], err = json.Marshal(of.With); err != nil {
		return result{}, err
	}
	subject := of.Subject
	if subject == "" {
		subject = of.Purpose
	}
	body := map[string]jsontext.Value{"proposalId": quoted("invitation"), "type": quoted(act.SessionInvitation), "subject": quoted(subject)}
	if len(of.Until) > 0 {
		body["validUntil"] = of.Until
	}
	if body["terms"], err = json.Marshal(terms, json.Deterministic(true)); err != nil {
		return result{}, err
	}
	s, err := c.say(ctx, addressed{Key: of.Key}, act.Propose, body)
	return result{value: s}, err
}

var escalateOutput = acceptance(object{"escalation": properties(object{
	"escalationId": text(""), "organisation": text(""), "asked": list(text("")), "deadline": text(""), "urgency": text(""), "status": text(""),
})})

// An escalated is the result of escalate.
type escalated struct {
	said
	Escalation struct {
		ID       string   `json:"escalationId"`
		Org      string   `json:"organisation"`
		Asked    []string `json:"asked"`    // who may decide
		Deadline string   `json:"deadline"` // no ruling by then asks the next level, or fails the session
		Urgency  string   `json:"urgency"`
		Status   string   `json:"status"`
	} `json:"escalation"`
}

// escalate pauses the session, and answers at once with how to wait.
func (c *call) escalate(ctx context.Context, args jsontext.Value) (result, error) {
	a, body, err := address(args)
	if err != nil {
		return result{}, err
	}
	s, err := c.say(ctx, a, act.Escalate, body)
	if err != nil {
		return result{}, err
	}
	s.Next = waitNext(s.Acceptance, "to hear the ruling, which only a human can make; call it again until it comes")
	e := escalated{said: s}
	e.Escalation.ID, e.Escalation.Status, e.Escalation.Asked = string(s.Message), "open", []string{}
	// It was accepted: what cannot be read now is left out.
	if view, err := ask(ctx, c, api.SessionGet, api.GetSession{Session: a.Session}); err == nil && view.Escalation != nil {
		v := view.Escalation
		e.Escalation.Org, e.Escalation.Deadline, e.Escalation.Urgency, e.Escalation.Status = string(v.Organisation), v.Deadline, v.Urgency, v.Status
		e.Escalation.Asked = []string{"any human of " + string(v.Organisation) + " who may decide"}
	}
	if item, err := ask(ctx, c, api.EscalationGet, api.GetEscalation{Escalation: e.Escalation.ID}); err == nil && item.Route != nil && len(item.Route.Levels) > item.Route.Level {
		if approvers := item.Route.Levels[item.Route.Level].Approvers; len(approvers) > 0 {
			e.Escalation.Asked = e.Escalation.Asked[:0]
			for _, who := range approvers {
				e.Escalation.Asked = append(e.Escalation.Asked, string(who))
			}
		}
	}
	return result{value: e}, nil
}
