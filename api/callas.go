package api

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/performatives"
)

// CallAs answers a verb as a principal that somebody else has authenticated.
type CallAs func(ctx context.Context, as performatives.Agent, verb string, request []byte) ([]byte, error)

// Call calls a verb as a principal and reads its reply.
func (c CallAs) Call(ctx context.Context, as performatives.Agent, verb Verb, request, reply any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := c(ctx, as, verb.Name, data)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, reply)
}
