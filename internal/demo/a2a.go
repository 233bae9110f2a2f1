package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"github.com/parley-asp/parley/performatives"
)

// a2aPath is where the broker's HTTP has the agents that A2A reaches.
const a2aPath = "/a2a/"

// overA2A is pattern 6 between two agents that reach each other over A2A.
func overA2A() scene {
	sc := escalationToHuman()
	sc.name, sc.title = "a2a", "Escalation to a human, over A2A"
	sc.shows = "Each agent is a server of A2A to the other. Their session is a task, whose state says whose turn it is, and that a human decides."
	sc.script = func(ctx context.Context, t *talk) error {
		seller, buyer := t.cast[0], t.cast[1]
		atBuyer, err := t.peer(ctx, seller, buyer)
		if err != nil {
			return err
		}
		defer atBuyer.Destroy() //nolint:errcheck // it holds no connection that is needed
		atSeller, err := t.peer(ctx, buyer, seller)
		if err != nil {
			return err
		}
		defer atSeller.Destroy() //nolint:errcheck // the same
		return negotiateByTasks(ctx, t, atBuyer, atSeller)
	}
	return sc
}

// negotiateByTasks has the seller send messages to the buyer's server, and the buyer to the seller's.
func negotiateByTasks(ctx context.Context, t *talk, seller, buyer *peer) error {
	const offer = "prop_050"
	asks := map[string]any{"seats": 300, "support": "24/7", "pricePerMonth": 15000}
	if err := seller.send(ctx, map[string]any{"action": "open", "purpose": t.scene.opening.Purpose}); err != nil {
		return err
	}
	if err := buyer.look(ctx); err != nil {
		return err
	}
	if err := buyer.send(ctx, map[string]any{"action": "accept"}); err != nil {
		return err
	}
	if err := seller.send(ctx, map[string]any{
		"action": "propose", "proposalId": offer, "type": "service-agreement", "subject": "Enterprise plan", "terms": asks,
	}); err != nil {
		return err
	}
	if err := buyer.look(ctx); err != nil {
		return err
	}
	if err := buyer.send(ctx, map[string]any{
		"action": "escalate", "reason": "authority-limit", "urgency": "high", "referenceId": offer,
		"context": "Proposed commitment of $15,000/month exceeds my limit of $5,000/month",
	}); err != nil {
		return err
	}
	human := t.cast[2]
	escalation, _ := buyer.status["escalationId"].(string)
	if err := human.approve(ctx, human.Session(t.id), escalation); err != nil {
		return err
	}
	if err := buyer.look(ctx); err != nil {
		return err
	}
	if err := buyer.send(ctx, map[string]any{"action": "accept"}); err != nil {
		return err
	}
	return seller.send(ctx, map[string]any{"action": "close", "summary": "Agreed on " + offer, "outcome": performatives.Completed})
}

// A peer is an agent with a client for the other's server.
type peer struct {
	*a2aclient.Client
	*talk
	as     *actor
	to     string         // the other's name
	status map[string]any // of the task, as data
}

func (t *talk) peer(ctx context.Context, as, to *actor) (*peer, error) {
	card, err := agentcard.DefaultResolver.Resolve(ctx, t.stage.http+a2aPath+to.Agent().Token())
	if err != nil {
		return nil, err
	}
	c, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithJSONRPCTransport(&http.Client{Transport: bearer{as.token}}))
	return &peer{Client: c, talk: t, as: as, to: card.Name}, err
}

// send sends an action: the first opens a task, the others belong to it. It does not wait for an answer.
func (p *peer) send(ctx context.Context, action map[string]any) error {
	m := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewDataPart(action))
	m.TaskID = a2a.TaskID(p.id)
	r, err := p.SendMessage(ctx, &a2a.SendMessageRequest{Message: m, Config: &a2a.SendMessageConfig{ReturnImmediately: true}})
	if err != nil {
		return fmt.Errorf("%s: %w", action["action"], err)
	}
	task, is := r.(*a2a.Task)
	if !is {
		return fmt.Errorf("the answer is %T, not a task", r)
	}
	return p.saw(ctx, fmt.Sprintf("sends SendMessage %s to %s", action["action"], p.to), task)
}

// look reads the task.
func (p *peer) look(ctx context.Context) error {
	task, err := p.GetTask(ctx, &a2a.GetTaskRequest{ID: a2a.TaskID(p.id)})
	if err != nil {
		return err
	}
	return p.saw(ctx, "sends GetTask to "+p.to, task)
}

// saw prints a task's state, and what the other side's server says of it.
func (p *peer) saw(ctx context.Context, what string, task *a2a.Task) error {
	p.id = performatives.SessionID(task.ContextID)
	text := []string{task.Status.State.String()}
	for _, part := range task.Status.Message.Parts {
		if said := part.Text(); said != "" {
			text = append(text, said)
		}
		if data, is := part.Data().(map[string]any); is {
			p.status = data
		}
	}
	for _, made := range task.Artifacts {
		text = append(text, "artifact "+made.Name)
	}
	return p.did(ctx, p.as, what+" → "+strings.Join(text, " · "))
}
