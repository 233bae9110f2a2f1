package performatives

// AcceptBody accepts a proposal, a commitment, a delegation, or what was delivered.
type AcceptBody struct {
	ReferenceID string   `json:"referenceId" jsonschema:"format=asp-id,description=The proposal\\, commitment or delegation that is accepted; in EXECUTING the messageId of an INFORM result or of an offer that ends a dispute"`
	Reason      string   `json:"reason,omitzero" jsonschema:"description=Why"`
	Quantity    *float64 `json:"quantity,omitzero" jsonschema:"exclusiveMinimum=0,description=How much of what was delivered is accepted; all of it by default"`
	InAdvance   bool     `json:"inAdvance,omitzero" jsonschema:"description=Of an invitation: the installation accepts for a party that did not see it\\, which consents to no publication by that"`
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
	var much Word
	if b.Quantity != nil {
		much = Word{Lead: ", quantity ", Name: "quantity", Text: inFull(*b.Quantity)}
	}
	return Text{
		Line:  words("", Word{Kind: Reference, Text: b.ReferenceID}, much),
		Below: below(append([]Part{Prose{Text: b.Reason}}, b.remarks()...)...),
	}
}
