package client

import (
	"context"
	"io"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// An Operator is a connection of whoever runs the broker: it sees every session
// and keeps the registry, but takes part in nothing.
type Operator struct{ Calls }

// operatorName is the name of every operator's login.
const operatorName = "operator"

// ConnectOperator connects an operator, as [Connect] does a principal. An operator only logs in, with
// [LoginFile] or [Login], and signs nothing. Under --dev anybody may, without.
func ConnectOperator(ctx context.Context, url string, options ...Option) (*Operator, error) {
	c, err := configure(url, options, false)
	if err != nil {
		return nil, err
	}
	l, err := dial(ctx, c, operatorName, "parley operator")
	if err != nil {
		return nil, err
	}
	return &Operator{Calls{l, api.OperatorCall}}, nil
}

var _, _ io.Closer = (*Client)(nil), (*Operator)(nil)

// Close closes the connection, unless it is the caller's own.
func (o *Operator) Close() error { return o.link.close() }

// AddAgent registers a principal, or replaces its card, its key and what the
// registry says of it.
func (o *Operator) AddAgent(ctx context.Context, card api.Card) (api.Card, error) {
	return call(ctx, &o.Calls, api.AgentAdd, api.AddAgent{Card: &card})
}

// AddHosted is AddAgent for an agent that the broker holds a signing key for. The card
// may have a key of its own besides.
func (o *Operator) AddHosted(ctx context.Context, card api.Card) (api.Card, error) {
	return call(ctx, &o.Calls, api.AgentAdd, api.AddAgent{Card: &card, Hosted: true})
}

// AddToken makes a token for one principal. Its secret is in the reply and nowhere else.
func (o *Operator) AddToken(ctx context.Context, q api.AddToken) (api.Token, error) {
	return call(ctx, &o.Calls, api.TokenAdd, q)
}

// RemoveToken removes a token; its requests and streams end at once.
func (o *Operator) RemoveToken(ctx context.Context, id string) (api.Token, error) {
	return call(ctx, &o.Calls, api.TokenRemove, api.TokenRef{ID: id})
}

// RotateKey gives a principal another key to sign with, and other login keys if any are given, at
// once: what is connected with one that is gone is disconnected. Transcripts keep what they pinned.
func (o *Operator) RotateKey(ctx context.Context, a performatives.Agent, key performatives.Key, logins ...performatives.Key) (api.Card, error) {
	return call(ctx, &o.Calls, api.AgentRotate, api.RotateKey{Agent: a, Key: key, LoginKeys: logins})
}

// RemoveAgent takes a principal out of the registry; it can log in no more.
// Transcripts keep what they pinned of it. It returns the card that was there, unless that answer
// was lost and only a later one came, that it is gone.
func (o *Operator) RemoveAgent(ctx context.Context, a performatives.Agent) (api.Card, error) {
	return call(ctx, &o.Calls, api.AgentRemove, api.AgentRef{Agent: a})
}
