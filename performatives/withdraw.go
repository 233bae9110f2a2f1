package performatives

// WithdrawBody takes back the sender's own proposal, unaccepted commitment,
// delegation or clarification.
type WithdrawBody struct {
	ReferenceID string `json:"referenceId" jsonschema:"format=asp-id,description=What is taken back"`
	Reason      string `json:"reason,omitzero"`
}

// Act is WITHDRAW.
func (*WithdrawBody) Act() Performative { return Withdraw }

var _ = enter(func() Body { return new(WithdrawBody) })
