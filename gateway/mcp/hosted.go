package mcpgateway

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/custody"
	"github.com/parley-asp/parley/hosted"
	"github.com/parley-asp/parley/performatives"
)

// A Broker answers verbs for a principal that is authenticated. Refusals are *session.Refusal.
type Broker interface {
	CallAs(ctx context.Context, as performatives.Agent, verb string, request []byte) ([]byte, error)
}

// Hosted says acts for hosted agents.
type Hosted interface {
	Say(ctx context.Context, as performatives.Agent, id performatives.SessionID, key string, said hosted.Said) (api.Acceptance, error)
}

// bearer is a caller in the broker's process, let in by a token. The broker signs for it.
type bearer struct {
	broker Broker
	hosted Hosted
	pass   custody.Pass
}

func (b bearer) Agent() performatives.Agent { return b.pass.Agent }
func (b bearer) Worker() string             { return b.pass.Worker }
func (b bearer) ReadOnly() bool             { return b.pass.ReadOnly }

func (b bearer) Call(ctx context.Context, verb string, request []byte) ([]byte, error) {
	return b.broker.CallAs(ctx, b.pass.Agent, verb, request)
}

func (b bearer) Say(ctx context.Context, id performatives.SessionID, key string, body performatives.Body, to performatives.Agent) (accepted api.Acceptance, err error) {
	said := hosted.Said{Performative: body.Act().String()}
	if said.Body, err = json.Marshal(body, json.Deterministic(true)); err != nil {
		return accepted, err
	}
	if to != "" {
		said.Recipient = quoted(string(to))
	}
	if key != "" {
		key = "key " + key // one with HTTP's Idempotency-Key
	}
	accepted, err = b.hosted.Say(ctx, b.pass.Agent, id, key, said)
	return accepted, unfit(err)
}

func (b bearer) Respond(ctx context.Context, q api.RespondTurn) (accepted api.Acceptance, err error) {
	data, err := json.Marshal(q)
	if err != nil {
		return accepted, err
	}
	reply, err := b.Call(ctx, api.TurnRespond.Name, data)
	if err != nil {
		return accepted, err
	}
	return accepted, json.Unmarshal(reply, &accepted)
}
