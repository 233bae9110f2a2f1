package a2agateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

func isA2A(err error) bool { _, is := err.(*a2a.Error); return is } //nolint:errorlint // made by look

// message is an entry as the agent reads it.
func (t *talk) message(e api.Entry, s snapshot, id string) *a2a.Message {
	allowed := s.acts()
	for i, act := range allowed {
		allowed[i] = strings.ToLower(act)
	}
	data := object{
		"performative": e.Performative, "from": string(e.From), "sessionId": string(e.Session), "sequenceNumber": e.Sequence,
		"state": s.view.State.String(), "allowed": allowed,
	}
	var body any
	if json.Unmarshal(e.Body, &body) == nil {
		data["body"] = body
	}
	text := fmt.Sprintf("%s of %s", e.Performative, e.From)
	if said := textOf(e); said != "" {
		text += ": " + said
	}
	for _, o := range s.deal.Open {
		if slices.Contains(o.For, t.agent) {
			text += "\n" + o.Text + "."
		}
	}
	return &a2a.Message{ID: id, Role: a2a.MessageRoleUser, Parts: a2a.ContentParts{
		{Content: a2a.Text(text), MediaType: textType}, {Content: a2a.Data{Value: data}, MediaType: jsonType},
	}}
}

// A reply is what an agent answered.
type reply struct {
	parts a2a.ContentParts
	auth  bool // it wants credentials
}

// send sends a message and waits for the answer, while the agent works on it.
func (t *talk) send(ctx context.Context, at *conversation, m *a2a.Message) (r reply, err error) {
	server, err := t.connected(ctx)
	if err != nil {
		return r, err
	}
	m.ContextID, m.TaskID = at.Context, at.Task
	asking, cancel := context.WithTimeout(ctx, AnswerWithin)
	defer cancel()
	result, err := server.client.SendMessage(asking, &a2a.SendMessageRequest{Message: m})
	if err != nil {
		return r, err
	}
	task, is := result.(*a2a.Task)
	if !is {
		message, _ := result.(*a2a.Message)
		if message == nil {
			return r, errEmpty
		}
		at.Context, at.Task = cmp.Or(message.ContextID, at.Context), ""
		return reply{parts: message.Parts}, nil
	}
	for until, pause := time.Now().Add(workWithin), retryWait; works(task); pause *= 2 {
		if time.Now().After(until) {
			return r, fmt.Errorf("its task %.80q is %s for %s", task.ID, task.Status.State, workWithin)
		}
		if err := background.Pause(ctx, pause); err != nil {
			return r, err
		}
		polling, cancel := context.WithTimeout(ctx, AnswerWithin)
		task, err = server.client.GetTask(polling, &a2a.GetTaskRequest{ID: task.ID})
		cancel()
		if err != nil {
			return r, err
		}
	}
	if task == nil {
		return r, errEmpty
	}
	at.Context, at.Task = task.ContextID, task.ID
	if task.Status.State.Terminal() {
		at.Task = "" // the next message begins another in the same context
	}
	return replyOf(task), nil
}

// errEmpty is the failure of a server that answers with nothing.
var errEmpty = errors.New("its answer is empty")

func works(task *a2a.Task) bool {
	return task != nil && (task.Status.State == a2a.TaskStateSubmitted || task.Status.State == a2a.TaskStateWorking)
}

// replyOf is what a task says: its status, else its artifacts, else what the agent said last. Members
// of its lists may be nil.
func replyOf(task *a2a.Task) reply {
	r := reply{auth: task.Status.State == a2a.TaskStateAuthRequired}
	if task.Status.Message != nil {
		r.parts = task.Status.Message.Parts
	}
	for _, artifact := range task.Artifacts {
		if artifact != nil && len(r.parts) == 0 {
			r.parts = artifact.Parts
		}
	}
	for i := len(task.History) - 1; i >= 0 && len(r.parts) == 0; i-- {
		if said := task.History[i]; said != nil && said.Role == a2a.MessageRoleAgent {
			r.parts = said.Parts
		}
	}
	return r
}

// answer says what an agent answered. If that is refused, the agent gets the refusal, and may
// answer once more.
func (t *talk) answer(ctx context.Context, c call, key string, s snapshot, e api.Entry, r reply, at *conversation) error {
	err := t.say(ctx, c, key, s, e, r)
	if !refused(err) && !isA2A(err) {
		return err
	}
	correction := t.message(e, s, uuid.NewSHA1(uuid.Nil, []byte(key)).String())
	correction.Parts = a2a.ContentParts{{Content: a2a.Text("That was refused: " + err.Error()), MediaType: textType}, correction.Parts[1]}
	mended, err := t.send(ctx, at, correction)
	if err != nil {
		return err
	}
	if err := t.say(ctx, c, key, s, e, mended); !refused(err) && !isA2A(err) {
		return err
	}
	return nil
}

// say says an answer as the agent. An invitation that is answered in words is accepted.
func (t *talk) say(ctx context.Context, c call, key string, s snapshot, e api.Entry, r reply) error {
	words := said{id: "answer-" + string(e.ID)}
	for _, p := range r.parts {
		if p == nil {
			continue
		}
		switch content := p.Content.(type) {
		case a2a.Text:
			words.text = strings.TrimSpace(words.text + "\n" + string(content))
		case a2a.Data:
			if data, is := content.Value.(map[string]any); is && words.action == nil && data["action"] != nil {
				words.action = data
			}
		}
	}
	if r.auth { // it is shown, not obeyed
		shown, err := speak(performatives.Observe, object{"subject": "auth-required", "data": object{"text": words.text}})
		if err != nil || s.view.State == session.Invited {
			return err
		}
		shown.Session, shown.Key = e.Session, key
		_, err = c.Say(ctx, shown)
		return err
	}
	var act api.Say
	var err error
	switch invited := s.view.State == session.Invited && s.view.Invitation.From != t.agent; {
	case words.text == "" && words.action == nil:
		return nil
	case invited && words.action == nil:
		act, err = speak(performatives.Accept, object{"referenceId": s.view.Invitation.Proposal, "message": words.text})
	default:
		act, err = words.act(c, s)
	}
	if err != nil {
		return err
	}
	act.Session, act.Key = e.Session, key
	_, err = c.Say(ctx, act)
	return err
}
