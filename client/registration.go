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

// RotateKey gives the client's principal another key, at the word of the one
// that it has and of the new one. It takes effect at once: the broker answers, and disconnects what
// is connected with the old key, this client too. So Close it and connect with
// the new key. If the answer is lost, the new key tells: it logs in or does not.
func (c *Client) RotateKey(ctx context.Context, to performatives.Signer) (api.Card, error) {
	request := api.RotateKey{Agent: c.agent, Key: to.Key(), Timestamp: time.Now().UTC().Format(performatives.TimeFormat)}
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
	return once(ctx, &c.calls, api.AgentRotate, request, c.link.timeout)
}

// Unenrol takes the key of one of the human's browsers away, and returns the card
// without it.
func (c *Client) Unenrol(ctx context.Context, key performatives.Key) (api.Card, error) {
	return call(ctx, &c.calls, api.HumanUnenrol, api.DeviceRef{Agent: c.agent, Key: key})
}

// Away says who stands in for the human from a time, zero for now, until another. The
// stand-in gets no right by it.
func (c *Client) Away(ctx context.Context, to performatives.Agent, from, until time.Time) (api.Card, error) {
	return call(ctx, &c.calls, api.HumanAway, api.SetAway{Agent: c.agent, To: to, From: from, Until: until})
}

// Back ends what Away says.
func (c *Client) Back(ctx context.Context) (api.Card, error) {
	return call(ctx, &c.calls, api.HumanAway, api.SetAway{Agent: c.agent})
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
	return call(ctx, &c.calls, api.AgentRegister, api.RegisterAgent{Card: &card})
}
