package performatives

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// SessionInvitation is the PROPOSE type that opens a session.
const SessionInvitation = "session-invitation"

// ProposeBody makes an offer, or, with type session-invitation, opens a session.
type ProposeBody struct {
	ProposalID string     `json:"proposalId" jsonschema:"format=asp-id,description=The offer's own id\\, unique in its session"`
	Type       string     `json:"type" jsonschema:"pattern=^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$,maxLength=128,description=service-agreement\\, data-exchange\\, resource-allocation\\, session-invitation\\, or any other dotted or dashed name"`
	Subject    string     `json:"subject" jsonschema:"minLength=1,description=What is offered in one line"`
	Terms      Object     `json:"terms" jsonschema:"type=object,description=The terms\\, validated against the terms schema that is named in schema"`
	ValidUntil *time.Time `json:"validUntil,omitzero" jsonschema:"description=When the offer expires\\, judged by the broker's clock"`
	Schema     string     `json:"schema,omitzero" jsonschema:"format=asp-id,description=A terms schema that the invitation agreed on"`
	Remarks
}

// Act is PROPOSE.
func (*ProposeBody) Act() Performative { return Propose }

var _ = enter(func() Body { return new(ProposeBody) })

// Remarks may accompany PROPOSE, COUNTER, ACCEPT, REJECT and CLARIFY.
type Remarks struct {
	Message    string `json:"message,omitzero" jsonschema:"description=Free text that goes with the act"`
	Assessment Object `json:"assessment,omitzero" jsonschema:"type=object,description=Why the sender acts so; its shape is the mode's"`
}

// Object is a JSON object kept as its own text.
type Object = jsontext.Value
