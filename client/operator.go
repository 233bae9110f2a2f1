package client

import (
	"context"
	"io"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// An Operator is a connection of whoever runs the broker: it sees every session
// and keeps the registry, but takes part in nothing.
type Operator struct{ calls }

// operatorName is the name of every operator's login.
const operatorName = "operator"

// ConnectOperator connects an operator, as [Connect] does a principal. Under
// --dev anybody may, [Unsigned].
func ConnectOperator(ctx context.Context, url string, options ...Option) (*Operator, error) {
	c, err := configure(url, options)
	if err != nil {
		return nil, err
	}
	l, err := dial(ctx, c, operatorName, "parley operator")
	if err != nil {
		return nil, err
	}
	return &Operator{calls{l, api.OperatorCall}}, nil
}

var _, _ io.Closer = (*Client)(nil), (*Operator)(nil)

// Close closes the connection, unless it is the caller's own.
func (o *Operator) Close() error { return o.link.close() }

// AddAgent registers a principal, or replaces its card, its key and what the
// registry says of it.
func (o *Operator) AddAgent(ctx context.Context, card api.Card) (api.Card, error) {
	return call(ctx, &o.calls, api.AgentAdd, api.AddAgent{Card: &card})
}

// AddHosted is AddAgent for an agent that the broker holds a signing key for. The card
// may have a key of its own besides.
func (o *Operator) AddHosted(ctx context.Context, card api.Card) (api.Card, error) {
	return call(ctx, &o.calls, api.AgentAdd, api.AddAgent{Card: &card, Hosted: true})
}

// Host has the broker make and hold a signing key for an agent.
func (o *Operator) Host(ctx context.Context, a performatives.Agent) (api.Card, error) {
	return call(ctx, &o.calls, api.AgentHost, api.AgentRef{Agent: a})
}

// Unhost destroys the signing key that the broker holds for an agent.
func (o *Operator) Unhost(ctx context.Context, a performatives.Agent) (api.Card, error) {
	return call(ctx, &o.calls, api.AgentUnhost, api.AgentRef{Agent: a})
}

// AddToken makes a token for one principal. Its secret is in the reply and nowhere else.
func (o *Operator) AddToken(ctx context.Context, q api.AddToken) (api.Token, error) {
	return call(ctx, &o.calls, api.TokenAdd, q)
}

// TokenPage lists tokens without their secrets.
func (o *Operator) TokenPage(ctx context.Context, q api.ListTokens) (api.Tokens, error) {
	return call(ctx, &o.calls, api.TokenList, q)
}

// RemoveToken removes a token; its requests and streams end at once.
func (o *Operator) RemoveToken(ctx context.Context, id string) (api.Token, error) {
	return call(ctx, &o.calls, api.TokenRemove, api.TokenRef{ID: id})
}

// RotateKey gives a principal another key, at once: what is connected with the
// old one is disconnected. Transcripts keep what they pinned.
func (o *Operator) RotateKey(ctx context.Context, a performatives.Agent, key performatives.Key) (api.Card, error) {
	return call(ctx, &o.calls, api.AgentRotate, api.RotateKey{Agent: a, Key: key})
}

// Enrol makes a code by which a human's browser enrols a key of its own.
func (o *Operator) Enrol(ctx context.Context, human performatives.Agent) (api.Enrolment, error) {
	return call(ctx, &o.calls, api.HumanEnrol, api.EnrolHuman{Agent: human})
}

// Unenrol takes such a key away; it returns the card without it.
func (o *Operator) Unenrol(ctx context.Context, human performatives.Agent, key performatives.Key) (api.Card, error) {
	return call(ctx, &o.calls, api.HumanUnenrol, api.DeviceRef{Agent: human, Key: key})
}

// Away says who stands in for a human from a time, zero for now, until another.
func (o *Operator) Away(ctx context.Context, human, to performatives.Agent, from, until time.Time) (api.Card, error) {
	return call(ctx, &o.calls, api.HumanAway, api.SetAway{Agent: human, To: to, From: from, Until: until})
}

// Back ends what Away says.
func (o *Operator) Back(ctx context.Context, human performatives.Agent) (api.Card, error) {
	return call(ctx, &o.calls, api.HumanAway, api.SetAway{Agent: human})
}

// RemoveAgent takes a principal out of the registry; it can log in no more.
// Transcripts keep what they pinned of it. It returns the card that was there.
func (o *Operator) RemoveAgent(ctx context.Context, a performatives.Agent) (api.Card, error) {
	return call(ctx, &o.calls, api.AgentRemove, api.AgentRef{Agent: a})
}
