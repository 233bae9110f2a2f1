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

// Act is DELEGATE.
func (*DelegateBody) Act() Performative { return Delegate }

var _ = enter(func() Body { return new(DelegateBody) })
