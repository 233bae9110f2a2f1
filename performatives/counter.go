package performatives

import "time"

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
	Remarks
}

// Act is COUNTER.
func (*CounterBody) Act() Performative { return Counter }

var _ = enter(func() Body { return new(CounterBody) })
