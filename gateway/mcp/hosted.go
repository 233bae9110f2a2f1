package mcpgateway

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/custody"
	"github.com/parley-asp/parley/performatives"
)

// A Broker answers verbs and judges envelopes for a principal that is authenticated.
// Refusals are *session.Refusal.
type Broker interface {
	CallAs(ctx context.Context, as performatives.Agent, verb string, request []byte) ([]byte, error)
	SubmitAs(ctx context.Context, as performatives.Agent, s performatives.SessionID, envelope []byte) (api.Acceptance, error)
}

// A Signers signs for hosted agents.
type Signers interface {
	Signer(ctx context.Context, a performatives.Agent) (performatives.Signer, error)
}

// hosted is a caller in the broker's process, let in by a token. The broker signs for it.
type hosted struct {
	broker  Broker
	signers Signers
	pass    custody.Pass
	now     func() time.Time
}

func (h hosted) Agent() performatives.Agent { return h.pass.Agent }
func (h hosted) Worker() string             { return h.pass.Worker }
func (h hosted) ReadOnly() bool             { return h.pass.ReadOnly }

func (h hosted) Call(ctx context.Context, verb string, request []byte) ([]byte, error) {
	return h.broker.CallAs(ctx, h.pass.Agent, verb, request)
}

func (h hosted) Say(ctx context.Context, id performatives.SessionID, body performatives.Body, to performatives.Agent) (accepted api.Acceptance, err error) {
	signer, err := h.signers.Signer(ctx, h.pass.Agent)
	if err != nil {
		return accepted, err
	}
	envelope, err := performatives.Draft{
		ID: performatives.MessageID(uuid.Must(uuid.NewV7()).String()), Session: id, Timestamp: h.now(), Sender: h.pass.Agent, Recipient: to, Body: body,
	}.Envelope(signer)
	if err != nil {
		return accepted, unfit(err)
	}
	return h.broker.SubmitAs(ctx, h.pass.Agent, id, envelope)
}

func (h hosted) Respond(ctx context.Context, q api.RespondTurn) (accepted api.Acceptance, err error) {
	data, err := json.Marshal(q)
	if err != nil {
		return accepted, err
	}
	reply, err := h.Call(ctx, api.TurnRespond.Name, data)
	if err != nil {
		return accepted, err
	}
	return accepted, json.Unmarshal(reply, &accepted)
}
