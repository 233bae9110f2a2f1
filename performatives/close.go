package performatives

// The outcomes of a CLOSE.
const (
	Completed = "completed"
	Abandoned = "abandoned"
	FailedEnd = "failed"
)

// CloseBody ends the session.
type CloseBody struct {
	Summary string `json:"summary,omitzero"`
	Outcome string `json:"outcome,omitzero" jsonschema:"enum=completed,enum=abandoned,enum=failed"`
	Reason  string `json:"reason,omitzero" jsonschema:"description=Why; a broker's CLOSE gives a code here"`
}

var _ = enter("CLOSE", Lifecycle, func() Body { return new(CloseBody) })

// Act is CLOSE.
func (*CloseBody) Act() Performative { return Close }

// ID is "": nothing refers to a CLOSE.
func (*CloseBody) ID(MessageID) string { return "" }

// Refers is "": a CLOSE is about the whole session.
func (*CloseBody) Refers() string { return "" }

// Text is how the act reads.
func (b *CloseBody) Text() Text {
	return Text{Line: words(": ", Word{Text: b.Outcome}, Word{Kind: Code, Text: b.Reason}), Below: below(Prose{Text: b.Summary})}
}
