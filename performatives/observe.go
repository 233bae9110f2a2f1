package performatives

import "github.com/go-json-experiment/json/jsontext"

// ObserveBody is a remark that asks for no reply.
type ObserveBody struct {
	Subject     string         `json:"subject" jsonschema:"minLength=1"`
	Data        jsontext.Value `json:"data,omitzero"`
	ReferenceID string         `json:"referenceId,omitzero" jsonschema:"format=asp-id"`
}

var _ = enter("OBSERVE", Lifecycle, func() Body { return new(ObserveBody) })

// Act is OBSERVE.
func (*ObserveBody) Act() Performative { return Observe }

// ID is "": nothing refers to an OBSERVE.
func (*ObserveBody) ID(MessageID) string { return "" }

// Refers is what the remark is about.
func (b *ObserveBody) Refers() string { return b.ReferenceID }

// Text is how the act reads.
func (b *ObserveBody) Text() Text {
	return Text{
		Line:  words("", Word{Kind: Subject, Text: b.Subject}, Word{Kind: Reference, Lead: ", about ", Text: b.ReferenceID, Tone: Faint}),
		Below: below(Data{Value: b.Data}),
	}
}
