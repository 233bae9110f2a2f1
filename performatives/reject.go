package performatives

// RejectBody turns down a proposal, a commitment or a delegation.
type RejectBody struct {
	ReferenceID string `json:"referenceId" jsonschema:"format=asp-id,description=The proposal\\, commitment or delegation that is rejected"`
	Code        string `json:"code" jsonschema:"enum=insufficient_trust_score,enum=unauthorized,enum=schema_unsupported,enum=budget_exceeded,enum=capacity_unavailable,enum=policy_violation,enum=timeout,enum=duplicate,enum=escalation_required,enum=unspecified,description=Why\\, for machines"`
	Reason      string `json:"reason" jsonschema:"minLength=1,description=Why\\, for people"`
	Retryable   bool   `json:"retryable" jsonschema:"description=Whether a revised offer has a reasonable chance; wins over the code's usual meaning"`
	Terminal    bool   `json:"terminal,omitzero" jsonschema:"description=A final rejection (convergent/1)"`
	Remarks
}

// Act is REJECT.
func (*RejectBody) Act() Performative { return Reject }

var _ = enter(func() Body { return new(RejectBody) })
