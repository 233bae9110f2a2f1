package performatives

// RejectBody turns down a proposal, a commitment, a delegation, or what was delivered.
type RejectBody struct {
	ReferenceID string `json:"referenceId" jsonschema:"format=asp-id,description=The proposal\\, commitment or delegation that is rejected; in EXECUTING the messageId of an INFORM result"`
	Code        string `json:"code" jsonschema:"enum=insufficient_trust_score,enum=unauthorized,enum=schema_unsupported,enum=budget_exceeded,enum=capacity_unavailable,enum=policy_violation,enum=timeout,enum=duplicate,enum=escalation_required,enum=unspecified,enum=late,enum=incomplete,enum=mismatch,enum=evidence_missing,description=Why\\, for machines. The last four\\, and unspecified\\, are of what was delivered"`
	Reason      string `json:"reason" jsonschema:"minLength=1,description=Why\\, for people"`
	Retryable   bool   `json:"retryable" jsonschema:"description=Whether a revised offer has a reasonable chance; wins over the code's usual meaning"`
	Terminal    bool   `json:"terminal,omitzero" jsonschema:"description=A final rejection (convergent/1)"`
	Remarks
}

var _ = enter("REJECT", Negotiation, func() Body { return new(RejectBody) })

// Act is REJECT.
func (*RejectBody) Act() Performative { return Reject }

// ID is "": nothing refers to a REJECT.
func (*RejectBody) ID(MessageID) string { return "" }

// Refers is what is rejected.
func (b *RejectBody) Refers() string { return b.ReferenceID }

// Text is how the act reads.
func (b *RejectBody) Text() Text {
	var reason, hope string
	if b.Reason != b.Code {
		reason = b.Reason
	}
	switch {
	case b.Terminal:
		hope = "final"
	case b.Retryable:
		hope = "a revised offer has a chance"
	}
	return Text{
		Line: words("",
			Word{Kind: Reference, Text: b.ReferenceID}, Word{Kind: Code, Lead: ": ", Text: b.Code, Tone: Bad}, Word{Lead: ", ", Text: hope}),
		Below: below(append([]Part{Prose{Text: reason}}, b.remarks()...)...),
	}
}
