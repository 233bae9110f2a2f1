package performatives

import "github.com/go-json-experiment/json/jsontext"

// EscalateBody pauses the session until a human has decided.
type EscalateBody struct {
	Reason          string         `json:"reason" jsonschema:"enum=authority-limit,enum=confidence-low,enum=policy-ambiguous,enum=adversarial-detected"`
	Urgency         string         `json:"urgency" jsonschema:"enum=low,enum=medium,enum=high,enum=critical,description=How soon an answer is due: by default 24 h\\, 4 h\\, 1 h\\, 15 min"`
	Context         jsontext.Value `json:"context,omitzero" jsonschema:"description=What the human needs to know\\, text or an object"`
	SuggestedAction string         `json:"suggestedAction,omitzero"`
	Sealed          Digests        `json:"sealed,omitzero" jsonschema:"description=Digests of context and suggestedAction\\, which go to the sender's own side only"`
	ReferenceID     string         `json:"referenceId,omitzero" jsonschema:"format=asp-id,description=The proposal at stake"`
}

// Confirmation is the reason of an item that asks to confirm an agreement; no ESCALATE has it.
const Confirmation = "confirmation"

// Delivered is the reason of an item that asks to accept what was delivered; no ESCALATE has it.
const Delivered = "delivery"

var _ = enter("ESCALATE", Action, func() Body { return new(EscalateBody) })

// Act is ESCALATE.
func (*EscalateBody) Act() Performative { return Escalate }

// ID is the messageId.
func (*EscalateBody) ID(m MessageID) string { return string(m) }

// Refers is the offer at stake.
func (b *EscalateBody) Refers() string { return b.ReferenceID }

// Text is how the act reads.
func (b *EscalateBody) Text() Text {
	return Text{
		Line: words("",
			Word{Kind: Code, Text: b.Reason, Tone: Warning}, Word{Lead: ", urgency ", Text: b.Urgency},
			Word{Kind: Reference, Lead: ", about ", Text: b.ReferenceID, Tone: Faint}),
		Below: below(Data{Value: b.Context}, Prose{Name: "suggests", Text: b.SuggestedAction}, b.Sealed.text()),
	}
}
