package performatives

import (
	"slices"
	"time"
)

// CounterBody retires the offer it names and opens its own in one step.
type CounterBody struct {
	ProposalID  string     `json:"proposalId" jsonschema:"format=asp-id,description=The counter-offer's own id"`
	ReferenceID string     `json:"referenceId" jsonschema:"format=asp-id,description=The offer it replaces"`
	Terms       Object     `json:"terms" jsonschema:"type=object,description=The new terms\\, whole and not as a difference"`
	Subject     string     `json:"subject,omitzero" jsonschema:"minLength=1,description=What is offered\\, by default the subject of the offer it replaces"`
	Type        string     `json:"type,omitzero" jsonschema:"pattern=^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$,maxLength=128,description=By default the type of the offer it replaces"`
	ValidUntil  *time.Time `json:"validUntil,omitzero" jsonschema:"description=When the offer expires\\, judged by the broker's clock"`
	Reason      string     `json:"reason,omitzero" jsonschema:"description=Why"`
	Schema      string     `json:"schema,omitzero" jsonschema:"format=asp-id,description=A terms schema that the invitation agreed on\\, by default that of the offer it replaces"`
	Binding
	Remarks
}

var _ = enter("COUNTER", Negotiation, func() Body { return new(CounterBody) })

// Act is COUNTER.
func (*CounterBody) Act() Performative { return Counter }

// ID is the counter-offer's own proposalId.
func (b *CounterBody) ID(MessageID) string { return b.ProposalID }

// SetID sets the proposalId.
func (b *CounterBody) SetID(id string) { b.ProposalID = id }

// Names is the arbiter of a new invitation.
func (b *CounterBody) Names() []Agent { return arbiterIn(b.Terms) }

// Refers is the offer that it replaces.
func (b *CounterBody) Refers() string { return b.ReferenceID }

// Because sets the reason.
func (b *CounterBody) Because(reason string) { b.Reason = reason }

// Offer is what is offered, as far as it differs from the offer it replaces.
func (b *CounterBody) Offer() Offer {
	return Offer{Type: b.Type, Subject: b.Subject, Terms: b.Terms, Schema: b.Schema, ValidUntil: b.ValidUntil}
}

// Text is how the act reads.
func (b *CounterBody) Text() Text {
	return Text{
		Line: words("",
			Word{Kind: Reference, Text: b.ReferenceID}, Word{Kind: OwnID, Lead: " with ", Text: b.ProposalID},
			Word{Kind: Subject, Lead: ": ", Text: b.Subject}),
		Below: below(slices.Concat(b.Offer().parts(), b.agreement(), []Part{Prose{Text: b.Reason}}, b.remarks())...),
	}
}
