// Package signing is a caller of the MCP gateway that keeps its key: the gateway runs beside the
// assistant, and what the assistant says is signed there and goes to the broker by the Go SDK.
package signing

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Caller speaks for the principal of a client of the broker, and signs with its key.
type Caller struct {
	*client.Client
	keys keys
}

// New is the caller of a client.
func New(c *client.Client) *Caller { return &Caller{Client: c} }

// answerWithin is how long an assistant waits for the broker.
const answerWithin = 10 * time.Second

// Worker is the only program of the principal.
func (c *Caller) Worker() string { return "" }

// ReadOnly is no caller with a key of its own.
func (c *Caller) ReadOnly() bool { return false }

// Say signs an act and submits it. What is said again under the same key says nothing twice. An act
// with ifHead is linked to that head, so it is refused at any other.
func (c *Caller) Say(ctx context.Context, id performatives.SessionID, key string, ifHead performatives.Hash, body performatives.Body, to performatives.Agent) (api.Acceptance, error) {
	content, err := json.Marshal([]any{id, to, body.Act().String(), body}, json.Deterministic(true))
	if err != nil {
		return api.Acceptance{}, err
	}
	act := keyed{key: key, content: string(content), session: id, message: performatives.MessageID(newID())}
	if id == "" {
		act.session = performatives.SessionID(newID())
	}
	return c.keys.once(ctx, act, c.Submit, func(ctx context.Context, act keyed) (api.Acceptance, error) {
		options := []client.ActOption{client.As(act.message)}
		if to != "" {
			options = append(options, client.To(to))
		}
		if ifHead != "" {
			head, err := c.Session(act.session).Head(ctx)
			if err != nil {
				return api.Acceptance{}, err
			}
			if head.PreviousHash != ifHead {
				return api.Acceptance{}, session.Refuse(session.ChainConflict, "the head of the session is not ifHead any more: read the session again, and decide anew")
			}
			options = append(options, client.LinkTo(head))
		}
		receipt, err := c.Session(act.session).Say(ctx, body, options...)
		return receipt.Acceptance, err
	})
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// Call calls a verb.
func (c *Caller) Call(ctx context.Context, verb string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, api.LongestWait+answerWithin)
	defer cancel()
	reply, err := c.Client.Call(ctx, verb, request)
	return reply, answered(err)
}

// Respond answers a turn that was picked up.
func (c *Caller) Respond(ctx context.Context, q api.RespondTurn) (api.Acceptance, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	accepted, err := c.RespondTurn(ctx, q)
	return accepted, answered(err)
}

// answered makes a refusal of what went wrong on the way to the broker.
func answered(err error) error {
	if _, refused := errors.AsType[*session.Refusal](err); err == nil || refused {
		return err
	}
	return session.Refuse(session.Unavailable, "the broker did not answer: %s", err)
}
