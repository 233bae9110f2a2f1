package performatives

import "github.com/go-json-experiment/json/jsontext"

// ObserveBody is a remark that asks for no reply.
type ObserveBody struct {
	Subject     string         `json:"subject" jsonschema:"minLength=1"`
	Data        jsontext.Value `json:"data,omitzero"`
	ReferenceID string         `json:"referenceId,omitzero" jsonschema:"format=asp-id"`
}

// Act is OBSERVE.
func (*ObserveBody) Act() Performative { return Observe }

var _ = enter(func() Body { return new(ObserveBody) })
