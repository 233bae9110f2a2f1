package performatives

// AcceptBody accepts a proposal, a commitment or a delegation.
type AcceptBody struct {
	ReferenceID string `json:"referenceId" jsonschema:"format=asp-id,description=The proposal\\, commitment or delegation that is accepted"`
	Reason      string `json:"reason,omitzero" jsonschema:"description=Why"`
	InAdvance   bool   `json:"inAdvance,omitzero" jsonschema:"description=Of an invitation: the installation accepts for a party that did not see it\\, which consents to no publication by that"`
	Remarks
	// AgreementSignature is of who accepts in binding/1.
	AgreementSignature string `json:"agreementSignature,omitzero" jsonschema:"minLength=1,description=The accepting party's Ed25519 signature over the agreement_hash\\, in base64url"`
}

var _ = enter("ACCEPT", Negotiation, func() Body { return new(AcceptBody) })

// Act is ACCEPT.
func (*AcceptBody) Act() Performative { return Accept }

// ID is "": nothing refers to an ACCEPT.
func (*AcceptBody) ID(MessageID) string { return "" }

// Refers is what is accepted.
func (b *AcceptBody) Refers() string { return b.ReferenceID }

// Because sets the reason.
func (b *AcceptBody) Because(reason string) { b.Reason = reason }

// Text is how the act reads.
func (b *AcceptBody) Text() Text {
	return Text{
		Line:  words("", Word{Kind: Reference, Text: b.ReferenceID}),
		Below: below(append([]Part{Prose{Text: b.Reason}}, b.remarks()...)...),
	}
}
