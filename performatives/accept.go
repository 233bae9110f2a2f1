package performatives

// AcceptBody accepts a proposal, a commitment or a delegation.
type AcceptBody struct {
	ReferenceID string `json:"referenceId" jsonschema:"format=asp-id,description=The proposal\\, commitment or delegation that is accepted"`
	Reason      string `json:"reason,omitzero" jsonschema:"description=Why"`
	Remarks
}

// Act is ACCEPT.
func (*AcceptBody) Act() Performative { return Accept }

var _ = enter(func() Body { return new(AcceptBody) })
