package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// a2aPath is where the broker's HTTP has the agents that A2A reaches.
const a2aPath = "/a2a/"

// tasks are what agents send to each other's servers over A2A.
type tasks struct {
	*player
	peers map[*actor]*a2aclient.Client // by who sends; each talks to one other
}

func (t *tasks) close() {
	for _, c := range t.peers {
		c.Destroy() //nolint:errcheck // it holds no connection that is needed
	}
}

// say sends an action: the first opens a context, the others are said in it, each in its newest task. It does not wait for an
// answer, which GetTask reads.
func (t *tasks) say(ctx context.Context, a *actor, action string, body jsontext.Value, to *actor) (string, error) {
	c := t.peers[a]
	if c == nil {
		card, err := agentcard.DefaultResolver.Resolve(ctx, t.stage.http+a2aPath+to.Agent().Token())
		if err != nil {
			return "", err
		}
		made, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithJSONRPCTransport(&http.Client{Transport: bearer{a.token}}))
		if err != nil {
			return "", err
		}
		t.peers[a], c = made, made
	}
	if action == "GetTask" {
		task, err := c.GetTask(ctx, &a2a.GetTaskRequest{ID: a2a.TaskID(t.session)})
		if err != nil {
			return "", err
		}
		return t.saw(ctx, a, "sends GetTask to "+to.name, task)
	}
	data := map[string]any{}
	if err := json.Unmarshal(body, &data); err != nil {
		return "", err
	}
	data["action"] = action
	m := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewDataPart(data))
	if len(t.entries) > 0 {
		m.ContextID = string(t.session)
	}
	r, err := c.SendMessage(ctx, &a2a.SendMessageRequest{Message: m, Config: &a2a.SendMessageConfig{ReturnImmediately: true}})
	if err != nil {
		return "", err
	}
	task, is := r.(*a2a.Task)
	if !is {
		return "", fmt.Errorf("the answer is %T, not a task", r)
	}
	return t.saw(ctx, a, "sends SendMessage "+action+" to "+to.name, task)
}

// saw prints a task's state, and what the other side's server says of it.
func (t *tasks) saw(ctx context.Context, a *actor, what string, task *a2a.Task) (string, error) {
	t.is(performatives.SessionID(task.ContextID))
	text := []string{task.Status.State.String()}
	for _, part := range task.Status.Message.Parts {
		if said := part.Text(); said != "" {
			text = append(text, said)
		}
	}
	for _, made := range task.Artifacts {
		text = append(text, "artifact "+made.Name)
	}
	result := strings.Join(text, " · ")
	return result, t.did(ctx, a, what+" → "+result)
}
