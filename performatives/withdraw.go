package performatives

// WithdrawBody takes back the sender's own proposal, unaccepted commitment,
// delegation or clarification.
type WithdrawBody struct {
	ReferenceID string `json:"referenceId" jsonschema:"format=asp-id,description=What is taken back"`
	Reason      string `json:"reason,omitzero"`
}

var _ = enter("WITHDRAW", Lifecycle, func() Body { return new(WithdrawBody) })

// Act is WITHDRAW.
func (*WithdrawBody) Act() Performative { return Withdraw }

// ID is "": nothing refers to a WITHDRAW.
func (*WithdrawBody) ID(MessageID) string { return "" }

// Refers is what is taken back.
func (b *WithdrawBody) Refers() string { return b.ReferenceID }

// Because sets the reason.
func (b *WithdrawBody) Because(reason string) { b.Reason = reason }

// Text is how the act reads.
func (b *WithdrawBody) Text() Text {
	return Text{Line: words("", Word{Kind: Reference, Text: b.ReferenceID}), Below: below(Prose{Text: b.Reason})}
}
