package performatives

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The types of a PROPOSE that mean something to the broker.
const (
	SessionInvitation = "session-invitation" // opens a session
	Amendment         = "amendment"          // offers other obligations, in EXECUTING
)

// ProposeBody makes an offer, or, with type session-invitation, opens a session.
type ProposeBody struct {
	ProposalID string     `json:"proposalId" jsonschema:"format=asp-id,description=The offer's own id\\, unique in its session"`
	Type       string     `json:"type" jsonschema:"pattern=^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$,maxLength=128,description=service-agreement\\, data-exchange\\, resource-allocation\\, session-invitation\\, or any other dotted or dashed name"`
	Subject    string     `json:"subject" jsonschema:"minLength=1,description=What is offered in one line"`
	Terms      Object     `json:"terms" jsonschema:"type=object,description=The terms\\, validated against the terms schema that is named in schema"`
	ValidUntil *time.Time `json:"validUntil,omitzero" jsonschema:"description=When the offer expires\\, judged by the broker's clock"`
	Schema     string     `json:"schema,omitzero" jsonschema:"format=asp-id,description=A terms schema that the invitation agreed on"`
	// ReferenceID is of an amendment.
	ReferenceID string `json:"referenceId,omitzero" jsonschema:"format=asp-id,description=Of an amendment: the commitment whose obligations it replaces"`
	Binding
	Remarks
}

var _ = enter("PROPOSE", Negotiation, func() Body { return new(ProposeBody) })

// Act is PROPOSE.
func (*ProposeBody) Act() Performative { return Propose }

// ID is the proposalId.
func (b *ProposeBody) ID(MessageID) string { return b.ProposalID }

// SetID sets the proposalId.
func (b *ProposeBody) SetID(id string) { b.ProposalID = id }

// Refers is the commitment that an amendment is about; any other offer is about nothing that was
// said before.
func (b *ProposeBody) Refers() string {
	if b.Type != Amendment {
		return ""
	}
	return b.ReferenceID
}

// Names is the arbiter of an invitation.
func (b *ProposeBody) Names() []Agent { return arbiterIn(b.Terms) }

// arbiterIn is whom an invitation's policy names, nobody in other terms.
func arbiterIn(terms Object) []Agent {
	var invitation struct {
		Policy struct {
			Arbiter Agent `json:"arbiter"`
		} `json:"policy"`
	}
	if json.Unmarshal(terms, &invitation) != nil || invitation.Policy.Arbiter == "" {
		return nil
	}
	return []Agent{invitation.Policy.Arbiter}
}

// Offer is what is offered.
func (b *ProposeBody) Offer() Offer {
	return Offer{Type: b.Type, Subject: b.Subject, Terms: b.Terms, Schema: b.Schema, ValidUntil: b.ValidUntil}
}

// Text is how the act reads.
func (b *ProposeBody) Text() Text {
	return Text{
		Line:  words("", Word{Kind: OwnID, Text: b.ProposalID}, Word{Text: b.Type}, Word{Kind: Subject, Lead: ": ", Text: b.Subject}),
		Below: below(slices.Concat(b.Offer().parts(), b.agreement(), b.remarks())...),
	}
}

// An Offer is what a PROPOSE or a COUNTER offers. What a COUNTER leaves empty is
// as in the offer that it replaces.
type Offer struct {
	Type, Subject string
	Terms         Object
	Schema        string
	ValidUntil    *time.Time
}

func (o Offer) parts() []Part {
	facts := faint(words(" · ", Word{Lead: "schema ", Text: o.Schema}, moment("valid until ", "valid until", o.ValidUntil)))
	return []Part{Terms{o.Terms}, Details{Words: facts}}
}

// Remarks may accompany PROPOSE, COUNTER, ACCEPT, REJECT and CLARIFY.
type Remarks struct {
	Message    string `json:"message,omitzero" jsonschema:"description=Free text that goes with the act"`
	Assessment Object `json:"assessment,omitzero" jsonschema:"type=object,description=Why the sender acts so; its shape is the mode's"`
}

// Remark is the remarks themselves, to read or to set.
func (r *Remarks) Remark() *Remarks { return r }

func (r *Remarks) remarks() []Part {
	return []Part{Prose{Text: r.Message}, Data{Name: "assessment", Value: r.Assessment}}
}

// Object is a JSON object kept as its own text.
type Object = jsontext.Value
