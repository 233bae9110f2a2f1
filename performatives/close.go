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

// Act is CLOSE.
func (*CloseBody) Act() Performative { return Close }

var _ = enter(func() Body { return new(CloseBody) })
