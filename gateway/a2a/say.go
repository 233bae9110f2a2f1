package a2agateway

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// said is what a message says: text, an action, or an envelope that the caller has signed.
type said struct {
	id       string // of the message
	text     string
	action   object
	envelope []byte
}

// maxText is how much of the first message the purpose of a session holds.
const maxText = 200

// read reads a message. One that has neither text nor data says nothing.
func read(m *a2a.Message) (s said, err error) {
	switch {
	case m == nil:
		return s, invalid("message is missing")
	case m.ID == "" || len(m.ID) > performatives.MaxID:
		return s, invalid("message.messageId has 1 to %d bytes", performatives.MaxID)
	case len(m.Parts) == 0:
		return s, invalid("message.parts is empty")
	case m.ContextID != "" && m.TaskID != "" && string(m.TaskID) != m.ContextID && !strings.HasPrefix(string(m.TaskID), m.ContextID+"."):
		return s, invalid("message.contextId is not that of the task")
	}
	s.id = m.ID
	for _, p := range m.Parts {
		if p == nil {
			continue
		}
		switch content := p.Content.(type) {
		case a2a.Text:
			s.text = strings.TrimSpace(s.text + "\n" + string(content))
		case a2a.Data:
			data, is := content.Value.(map[string]any)
			if !is || s.action != nil || s.envelope != nil {
				return s, invalid("a message has one data part: an object with an action, or a signed envelope")
			}
			if version, _ := data["version"].(string); strings.HasPrefix(version, "asp/") {
				if s.envelope, err = json.Marshal(data, json.Deterministic(true)); err != nil {
					return s, invalid("the envelope is no JSON")
				}
				continue
			}
			s.action = maps.Clone(data)
		default:
			return s, a2a.NewError(a2a.ErrUnsupportedContentType, "parts are text or data; files are not taken")
		}
	}
	if s.text == "" && s.action == nil && s.envelope == nil {
		return s, invalid("the message says nothing")
	}
	return s, nil
}

// SendMessage says what a message says, and answers with the task.
func (t tasks) SendMessage(ctx context.Context, q *a2a.SendMessageRequest) (a2a.SendMessageResult, error) {
	c := callOf(ctx)
	of, _, err := t.say(ctx, c, q)
	if err != nil {
		return nil, t.refusal(err)
	}
	config := cmp.Or(q.Config, &a2a.SendMessageConfig{})
	if !config.ReturnImmediately {
		t.wait(ctx, c, of)
	}
	task, err := t.task(ctx, c, of, config.HistoryLength, true)
	switch {
	case err == nil:
		return task, nil
	case errors.Is(context.Cause(ctx), custody.ErrToken):
		return nil, a2a.NewError(a2a.ErrUnauthenticated, "the message was said; the token is no longer valid")
	}
	return nil, t.refusal(err)
}

// say says what a message says, and sets up the notifications that come with it. It returns
// the task in which it was said, and the entry that it became.
func (g *Gateway) say(ctx context.Context, c call, q *a2a.SendMessageRequest) (of ref, entry uint64, err error) {
	s, err := read(q.Message)
	if err == nil {
		err = c.wrong
	}
	if err != nil {
		return of, 0, err
	}
	if err := c.Acts(); err != nil {
		return of, 0, err
	}
	if q.Config != nil && q.Config.PushConfig != nil {
		if err := g.checkPush(ctx, q.Config.PushConfig); err != nil {
			return of, 0, err
		}
	}
	if q.Config != nil && q.Config.HistoryLength != nil && *q.Config.HistoryLength < 0 {
		return of, 0, invalid("historyLength is at least 0")
	}
	if q.Message.TaskID != "" {
		if of, err = refOf(q.Message.TaskID); err != nil {
			return of, 0, err
		}
	} else {
		of = ref{session: performatives.SessionID(q.Message.ContextID)}
	}
	at, err := g.act(ctx, c, of, s)
	if err != nil {
		return of, 0, err
	}
	view, err := c.View(ctx, at.Session)
	if err != nil {
		return of, 0, err
	}
	of = ref{at.Session, with(at.Sequence, view)}
	if q.Config != nil && q.Config.PushConfig != nil {
		_, err = g.addPush(ctx, c, of, *q.Config.PushConfig)
	}
	return of, at.Sequence, err
}

// act makes a message an act: in the session that it names, else in a new one. A task that it names takes
// it only while it is not over.
func (g *Gateway) act(ctx context.Context, c call, of ref, s said) (was api.Acceptance, err error) {
	id, task := of.session, of.number > 0
	if s.envelope != nil {
		return g.submit(ctx, c, of, s)
	}
	key := c.to.Token() + " " + string(id) + " " + s.id
	asked, err := s.digest()
	if err != nil {
		return was, err
	}
	if was, accepted, err := g.again(ctx, c, "a2a open "+key, asked); err != nil || accepted && s.opensOnly() {
		return was, err // a message that came before is answered as it was then
	} else if accepted {
		return was, g.hold(ctx, c, was.Session, s)
	}
	if was, accepted, err := g.again(ctx, c, "a2a "+key, asked); err != nil || accepted {
		return was, err
	}
	if id != "" {
		if _, err := performatives.ParseSessionID(string(id)); err != nil && !task {
			return was, invalid("a contextId of your own is a UUIDv7 in lower case; without one you get one")
		}
		view, err := g.look(ctx, c, of)
		if task || !errors.Is(err, &session.Refusal{Code: session.UnknownSession}) {
			if err != nil {
				return was, err
			}
			if task && view.state(c.Agent).Terminal() {
				return was, overAlready()
			}
			act, err := s.act(c, view)
			if err == nil {
				act.Context, err = s.context()
			}
			if err != nil {
				return was, err
			}
			act.Session, act.Key, act.Asked = id, "a2a "+key, asked
			return c.Say(ctx, act)
		}
	}
	return g.open(ctx, c, id, "a2a open "+key, asked, s)
}

// submit submits an envelope as it is. One that was accepted before is answered as it was then.
func (g *Gateway) submit(ctx context.Context, c call, of ref, s said) (was api.Acceptance, err error) {
	m, err := performatives.Read(s.envelope)
	if err != nil {
		return was, invalid("the envelope: %v", err)
	}
	if of.session != "" && m.Session != of.session {
		return was, invalid("the envelope is of another session than the message")
	}
	if of.number > 0 {
		view, err := g.look(ctx, c, of)
		if err != nil {
			return was, err
		}
		if known := slices.ContainsFunc(view.entries, func(e api.Entry) bool { return e.ID == m.ID }); !known && view.state(c.Agent).Terminal() {
			return was, overAlready()
		}
	}
	return c.Submit(ctx, m.Session, s.envelope)
}

// actions are the names of acts that are not their performative's.
var actions = map[string]performatives.Performative{
	"question": performatives.Clarify, "ask": performatives.Query, "answer": performatives.Inform,
}

// opens is the action that only opens a session.
const opens = "open"

// performative is the act of the action; text alone is INFORM or QUERY.
func (s said) performative() (performatives.Performative, error) {
	if s.action == nil {
		if strings.HasSuffix(s.text, "?") {
			return performatives.Query, nil
		}
		return performatives.Inform, nil
	}
	name, _ := s.action["action"].(string)
	if act, known := actions[strings.ToLower(name)]; known {
		return act, nil
	}
	act := performatives.Parse(strings.ToUpper(name))
	if act == performatives.Unknown {
		names := slices.Sorted(maps.Keys(actions))
		for _, p := range performatives.All() {
			names = append(names, strings.ToLower(p.String()))
		}
		return act, invalid("data.action is one of %s, or %s to open a session", strings.Join(names, ", "), opens)
	}
	return act, nil
}

// members of a data part that are no part of the body.
var outside = []string{"action", "body", "recipient", "constraints", "purpose", "mode"}

// act is what a message says in a session. What it leaves out is taken from what waits for
// the caller's answer.
func (s said) act(c call, at snapshot) (api.Say, error) {
	act, err := s.performative()
	if err != nil {
		return api.Say{}, err
	}
	body := object{}
	given, explicit := s.action["body"].(map[string]any)
	if explicit {
		maps.Copy(body, given)
	} else {
		maps.Copy(body, s.action)
		for _, name := range outside {
			delete(body, name)
		}
	}
	if body["terms"] != nil && (act == performatives.Accept || act == performatives.Reject) {
		return api.Say{}, invalid("data.terms are no part of %s: counter offers other terms", strings.ToLower(act.String()))
	}
	if s.action["action"] == "question" && body["referenceId"] == nil {
		if waiting, _ := at.waiting(c.Agent); len(waiting) == 0 {
			act = performatives.Query // there is no offer to ask about
		}
	}
	if act == performatives.Accept && body["referenceId"] == nil {
		offers, before := at.offeredSince(c.Agent)
		if len(offers) > 1 {
			return api.Say{}, invalid("there is more than one new offer: data.referenceId says which you accept, of %s", strings.Join(offers, ", "))
		}
		if len(offers) == 1 && before != "" {
			return api.Say{}, invalid("%s came after %s, which you have not answered: data.referenceId says which you accept", offers[0], before)
		}
	}
	s.fill(act, body, c, at)
	if body["referenceId"] == nil && gateway.Answers(act) {
		if body["referenceId"], err = gateway.NothingWaits(act, &at.deal); err != nil {
			return api.Say{}, err
		}
	}
	said, err := speak(act, body)
	if err != nil {
		return said, invalid("the data part is no JSON")
	}
	for name, into := range map[string]*jsontext.Value{"recipient": &said.Recipient, "constraints": &said.Constraints} {
		if value, has := s.action[name]; has {
			if *into, err = json.Marshal(value, json.Deterministic(true)); err != nil {
				return said, invalid("data.%s is no JSON", name)
			}
		}
	}
	return said, nil
}
