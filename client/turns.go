package client

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// PickUp claims the turn that has waited longest for the client's principal. Its Claim is
// nil when none waits.
func (c *Client) PickUp(ctx context.Context, q api.PickUpTurn) (api.Turn, error) {
	return call(ctx, &c.Calls, api.TurnPickup, q)
}

// RespondTurn answers a turn that was picked up, by the id of its claim or of its session: q.ID. A
// client with a key signs the act; for a hosted principal without one the broker does, once for a
// claim, however often it is asked.
func (c *Client) RespondTurn(ctx context.Context, q api.RespondTurn) (api.Acceptance, error) {
	if c.link.signer == nil || len(q.Envelope) > 0 {
		return call(ctx, &c.Calls, api.TurnRespond, q)
	}
	id, err := performatives.ParseSessionID(cmp.Or(string(q.Session), q.ID))
	if err != nil {
		return api.Acceptance{}, err
	}
	act := performatives.Parse(q.Performative)
	if act == performatives.Unknown {
		return api.Acceptance{}, fmt.Errorf("there is no performative %q", q.Performative)
	}
	body := performatives.NewBody(act)
	if err := json.Unmarshal(q.Body, body); err != nil {
		return api.Acceptance{}, fmt.Errorf("the body of %s: %w", act, err)
	}
	if remarked, is := body.(performatives.Remarked); is {
		remark := remarked.Remark()
		if len(remark.Assessment) == 0 {
			remark.Assessment = q.Assessment
		}
		remark.Message = cmp.Or(remark.Message, q.Message)
	}
	envelope, err := performatives.Draft{
		ID: performatives.MessageID(uuid.Must(uuid.NewV7()).String()), Session: id, Timestamp: time.Now(), Sender: c.agent, Body: body,
	}.Envelope(c.link.signer)
	if err != nil {
		return api.Acceptance{}, err
	}
	return call(ctx, &c.Calls, api.TurnRespond, api.RespondTurn{ID: q.ID, Worker: q.Worker, Envelope: jsontext.Value(envelope)})
}
