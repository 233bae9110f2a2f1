// Package calls lets gateways call verbs of the broker as a principal whom they have authenticated.
package calls

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A Broker answers verbs as a principal that somebody else has authenticated.
type Broker interface {
	CallAs(ctx context.Context, as performatives.Agent, verb string, request []byte) ([]byte, error)
}

// As calls a verb as a principal and reads its reply.
func As(ctx context.Context, b Broker, as performatives.Agent, verb api.Verb, request, reply any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := b.CallAs(ctx, as, verb.Name, data)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, reply)
}
