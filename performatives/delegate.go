package performatives

import "time"

// DelegateBody invites an agent to act for the sender, within bounds.
type DelegateBody struct {
	TargetAgent Agent      `json:"targetAgent" jsonschema:"format=asp-principal,description=Who is to act"`
	Scope       string     `json:"scope" jsonschema:"minLength=1,description=What for\\, in words"`
	Authority   string     `json:"authority" jsonschema:"enum=full,enum=limited,enum=advisory"`
	Protocol    string     `json:"protocol,omitzero" jsonschema:"enum=asp"`
	ReferenceID string     `json:"referenceId,omitzero" jsonschema:"format=asp-id,description=Limits the authority to this proposal and its counters"`
	ValidUntil  *time.Time `json:"validUntil,omitzero" jsonschema:"description=When the authority ends\\, judged by the broker's clock"`
	MaxDepth    *int       `json:"maxDepth,omitzero" jsonschema:"minimum=0,maximum=3,description=How many levels of delegates this may grow to\\, counting this one\\, at most 3 in all"`
}

var _ = enter("DELEGATE", Action, func() Body { return new(DelegateBody) })

// Act is DELEGATE.
func (*DelegateBody) Act() Performative { return Delegate }

// ID is the messageId.
func (*DelegateBody) ID(m MessageID) string { return string(m) }

// Refers is the proposal that the authority is limited to.
func (b *DelegateBody) Refers() string { return b.ReferenceID }

// Names is who is to act.
func (b *DelegateBody) Names() []Agent { return []Agent{b.TargetAgent} }

// Text is how the act reads.
func (b *DelegateBody) Text() Text {
	var counters string
	if b.ReferenceID != "" {
		counters = "and its counters"
	}
	return Text{
		Line: words("",
			Word{Kind: Principal, Lead: "to ", Text: string(b.TargetAgent)}, Word{Lead: ": ", Text: b.Authority + " authority"},
			Word{Kind: Reference, Lead: " over ", Text: b.ReferenceID}, Word{Lead: " ", Text: counters},
			moment(", until ", "valid until", b.ValidUntil)),
		Below: below(Prose{Text: b.Scope}),
	}
}
