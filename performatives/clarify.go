package performatives

import "github.com/go-json-experiment/json/jsontext"

// ClarifyBody asks what fields of an offer mean; until they are answered, the
// offer cannot be accepted or rejected.
type ClarifyBody struct {
	ReferenceID string     `json:"referenceId" jsonschema:"format=asp-id,description=The proposal or commitment in question"`
	Questions   []Question `json:"questions" jsonschema:"minItems=1"`
	Remarks
}

// A Question is about one field of the offer's body.
type Question struct {
	Field    string           `json:"field" jsonschema:"minLength=1,description=Dotted path into the offer's body\\, such as terms.storageLimit"`
	Question string           `json:"question" jsonschema:"minLength=1"`
	Options  []jsontext.Value `json:"options,omitzero" jsonschema:"description=Suggested answers"`
	Strict   bool             `json:"strict,omitzero" jsonschema:"description=The answer is one of the options"`
}

var _ = enter("CLARIFY", Information, func() Body { return new(ClarifyBody) })

// Act is CLARIFY.
func (*ClarifyBody) Act() Performative { return Clarify }

// ID is the messageId.
func (*ClarifyBody) ID(m MessageID) string { return string(m) }

// Refers is the offer in question.
func (b *ClarifyBody) Refers() string { return b.ReferenceID }

// Text is how the act reads.
func (b *ClarifyBody) Text() Text {
	return Text{
		Line:  words("", Word{Kind: Reference, Text: b.ReferenceID}),
		Below: below(append([]Part{Asked(b.Questions)}, b.remarks()...)...),
	}
}
