package client

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// hearer is the broker that acts are signed for, so that nobody enters them at
// another one where the principal is known by the same key. It is asked once
// for a connection.
func (c *Client) hearer(ctx context.Context) (performatives.Key, error) {
	if key := c.link.broker.Load(); key != nil {
		return *key, nil
	}
	key, err := c.BrokerKey(ctx)
	if err == nil {
		c.link.broker.Store(&key)
	}
	return key, err
}

// RotateKey gives the client's principal another key to sign with, at the word of the one
// that it has and of the new one, and other login keys if any are given. It takes effect at once: the broker
// answers, and disconnects what is connected with a login key that is no longer the principal's, perhaps this
// client too. So Close it and connect with the new keys. If the answer is lost, a new login key tells: it logs in
// or does not.
func (c *Client) RotateKey(ctx context.Context, to performatives.Signer, logins ...performatives.Key) (api.Card, error) {
	request := api.RotateKey{Agent: c.agent, Key: to.Key(), LoginKeys: logins, Timestamp: time.Now().UTC().Format(performatives.TimeFormat)}
	if c.link.signer != nil {
		data, err := request.SigningBytes()
		if err != nil {
			return api.Card{}, fmt.Errorf("%s: %w", api.AgentRotate.Name, err)
		}
		if request.Signature, err = performatives.SignBytes(c.link.signer, data); err != nil {
			return api.Card{}, fmt.Errorf("%s: %w", api.AgentRotate.Name, err)
		}
		if request.Proof, err = performatives.SignBytes(to, data); err != nil {
			return api.Card{}, fmt.Errorf("%s: %w", api.AgentRotate.Name, err)
		}
	}
	// Sent once: the connection breaks right after the answer, and to ask again
	// there would be none.
	return once(ctx, &c.Calls, api.AgentRotate, request, c.link.timeout)
}

// Register says who the client's principal is: it replaces the card, whose
// agentId and key are by default the client's own.
func (c *Client) Register(ctx context.Context, card api.Card) (api.Card, error) {
	if card.Agent == "" {
		card.Agent = c.agent
	}
	if card.Key == "" {
		card.Key = c.Key()
	}
	return call(ctx, &c.Calls, api.AgentRegister, api.RegisterAgent{Card: &card})
}
