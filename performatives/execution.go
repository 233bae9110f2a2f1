package performatives

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// What is said in EXECUTING, of what was committed to (COMMITMENTS.md C2): the data of an INFORM
// by its type.

// An ObligationID names an obligation of a commitment: the id that it has there, else its index.
// JSON may have the index as a number.
type ObligationID string

// UnmarshalJSON reads an id or an index.
func (o *ObligationID) UnmarshalJSON(data []byte) error {
	v := jsontext.Value(data)
	if v.Kind() == '0' {
		n, err := strconv.ParseUint(string(data), 10, 32)
		*o = ObligationID(strconv.FormatUint(n, 10))
		return err
	}
	return json.Unmarshal(data, (*string)(o))
}

// Evidence is a file by its digest. parley stores no files.
type Evidence struct {
	Kind      string `json:"kind" jsonschema:"minLength=1,maxLength=128,description=What it is\\, such as invoice\\, photo or test-report"`
	Digest    Hash   `json:"digest" jsonschema:"pattern=^sha256:[0-9a-f]{64}$,description=SHA-256 of the file"`
	URI       string `json:"uri,omitzero" jsonschema:"maxLength=2048,description=Where it may be found"`
	MediaType string `json:"mediaType,omitzero" jsonschema:"maxLength=128"`
	Note      string `json:"note,omitzero" jsonschema:"maxLength=2048"`
}

// ProgressData is the data of an INFORM progress about an obligation. It changes nothing.
type ProgressData struct {
	CommitmentID string         `json:"commitmentId" jsonschema:"format=asp-id"`
	Obligation   ObligationID   `json:"obligation" jsonschema:"oneof_type=string;integer,minLength=1,description=The obligation's id\\, or its index where it has none"`
	Data         jsontext.Value `json:"data,omitzero"`
}

// ResultData is the data of an INFORM result that says that an obligation is fulfilled, at least
// in part. The other side has the acceptance window to accept or reject it.
type ResultData struct {
	CommitmentID string       `json:"commitmentId" jsonschema:"format=asp-id"`
	Obligation   ObligationID `json:"obligation" jsonschema:"oneof_type=string;integer,minLength=1,description=The obligation's id\\, or its index where it has none"`
	Quantity     *float64     `json:"quantity,omitzero" jsonschema:"exclusiveMinimum=0,description=How much is delivered; all that is still due by default"`
	Unit         string       `json:"unit,omitzero" jsonschema:"maxLength=64,description=That of the obligation"`
	Evidence     []Evidence   `json:"evidence,omitzero" jsonschema:"maxItems=64"`
}

// WaiverData is the data of an INFORM waiver: the other side does without an obligation.
type WaiverData struct {
	CommitmentID string       `json:"commitmentId" jsonschema:"format=asp-id"`
	Obligation   ObligationID `json:"obligation" jsonschema:"oneof_type=string;integer,minLength=1,description=The obligation's id\\, or its index where it has none"`
	Reason       string       `json:"reason" jsonschema:"minLength=1"`
}

// DisputeData is the data of an INFORM dispute about an entry of the session.
type DisputeData struct {
	DisputeID string     `json:"disputeId" jsonschema:"format=asp-id,description=The dispute's own id\\, unique in its session"`
	Subject   Hash       `json:"subject" jsonschema:"pattern=^sha256:[0-9a-f]{64}$,description=The hash of the entry that it is about"`
	Ground    string     `json:"ground" jsonschema:"enum=non-delivery,enum=late,enum=mismatch,enum=unauthorized-change,enum=escrow,enum=other"`
	Claim     string     `json:"claim" jsonschema:"minLength=1,maxLength=8192,description=What is claimed\\, for people"`
	Remedy    string     `json:"remedy,omitzero" jsonschema:"maxLength=8192,description=What would end it"`
	Severity  int        `json:"severity" jsonschema:"minimum=1,maximum=5"`
	Evidence  []Evidence `json:"evidence,omitzero" jsonschema:"maxItems=64"`
}

// The grounds of a dispute that the transcript alone may show.
const (
	NonDelivery  = "non-delivery"
	LateDelivery = "late"
)

// ReplyData is the data of an INFORM reply to a dispute. An offer ends it once the side that filed
// the dispute accepts it, by the INFORM's messageId.
type ReplyData struct {
	DisputeID string     `json:"disputeId" jsonschema:"format=asp-id"`
	Position  string     `json:"position" jsonschema:"enum=concede,enum=deny,enum=offer"`
	Comment   string     `json:"comment,omitzero" jsonschema:"maxLength=8192"`
	Remedy    string     `json:"remedy,omitzero" jsonschema:"maxLength=8192,description=What is offered"`
	Evidence  []Evidence `json:"evidence,omitzero" jsonschema:"maxItems=64"`
	ViewHash  Hash       `json:"shown,omitzero" jsonschema:"pattern=^sha256:[0-9a-f]{64}$,description=The dispute's shown\\, of what the sender saw; one that has changed since is not answered"`
}

// The positions of a reply.
const (
	Concede = "concede"
	Deny    = "deny"
	OfferOf = "offer"
)

// DecisionData is the data of an INFORM resolution by which an arbiter decides a dispute.
type DecisionData struct {
	DisputeID string         `json:"disputeId" jsonschema:"format=asp-id"`
	Decision  string         `json:"decision" jsonschema:"enum=upheld,enum=dismissed,enum=split"`
	Reason    string         `json:"reason" jsonschema:"minLength=1,maxLength=8192"`
	Award     jsontext.Value `json:"award,omitzero" jsonschema:"description=What follows\\, for the parties: parley moves no money"`
	ViewHash  Hash           `json:"shown,omitzero" jsonschema:"pattern=^sha256:[0-9a-f]{64}$,description=The dispute's shown\\, of what the sender saw; one that has changed since is not decided"`
}

// The decisions of a dispute.
const (
	Upheld     = "upheld"
	Dismissed  = "dismissed"
	Split      = "split"
	Conceded   = "conceded"   // by the other side
	Agreed     = "agreed"     // by an offer that was accepted
	Unresolved = "unresolved" // after 30 days
)

// EventData is the data of an INFORM event: what the broker enters when a time has passed.
type EventData struct {
	Event        string       `json:"event" jsonschema:"enum=breached,enum=deemed,enum=decided,enum=unresolved,enum=escalation_expired"`
	CommitmentID string       `json:"commitmentId,omitzero"`
	Obligation   ObligationID `json:"obligation,omitzero"`
	ReferenceID  string       `json:"referenceId,omitzero" jsonschema:"description=The messageId of the INFORM result that counts as accepted"`
	DisputeID    string       `json:"disputeId,omitzero"`
	EscalationID string       `json:"escalationId,omitzero"`
	Decision     string       `json:"decision,omitzero" jsonschema:"description=Of a dispute that the transcript alone decides"`
	Due          string       `json:"due,omitzero" jsonschema:"format=date-time,description=When the time had passed"`
}

// The events that a broker enters.
const (
	Breached         = "breached"           // a deadline passed, and the obligation is still due
	Deemed           = "deemed"             // nobody answered a delivery within its acceptance window
	Decided          = "decided"            // the transcript alone decides a dispute
	EscalationLapsed = "escalation_expired" // nobody decided; obligations stand
)

// about reads the data of an INFORM of one of some types that names a member.
func about[T any](b *InformBody, kind string, named func(*T) string) (data T, ok bool) {
	if b.Kind() != kind || b.Data.Kind() != '{' {
		return data, false
	}
	return data, json.Unmarshal(b.Data, &data) == nil && named(&data) != ""
}

// Progress reads the data of a progress about an obligation.
func (b *InformBody) Progress() (ProgressData, bool) {
	return about(b, Progress, func(d *ProgressData) string { return d.CommitmentID })
}

// Delivery reads the data of a result about an obligation.
func (b *InformBody) Delivery() (ResultData, bool) {
	return about(b, Result, func(d *ResultData) string { return d.CommitmentID })
}

// Waiver reads the data of a waiver.
func (b *InformBody) Waiver() (WaiverData, bool) {
	return about(b, Waiver, func(d *WaiverData) string { return d.CommitmentID })
}

// Dispute reads the data of a dispute.
func (b *InformBody) Dispute() (DisputeData, bool) {
	return about(b, Dispute, func(d *DisputeData) string { return d.DisputeID })
}

// Reply reads the data of a reply to a dispute.
func (b *InformBody) Reply() (ReplyData, bool) {
	return about(b, Reply, func(d *ReplyData) string { return d.DisputeID })
}

// Decides reads the data of a resolution of a dispute.
func (b *InformBody) Decides() (DecisionData, bool) {
	return about(b, Resolution, func(d *DecisionData) string { return d.DisputeID })
}

// Event reads the data of a broker's event.
func (b *InformBody) Event() (EventData, bool) {
	return about(b, Event, func(d *EventData) string { return d.Event })
}

// EventBody is a broker's INFORM event.
func EventBody(e EventData) *InformBody {
	data, _ := json.Marshal(e, json.Deterministic(true)) // text that JSON cannot write gets into no id
	return &InformBody{Type: Event, Data: data}
}

// executed is how what is said of a commitment or a dispute reads.
func (b *InformBody) executed() (Text, bool) {
	if d, ok := b.Delivery(); ok {
		return d.text("delivered", d.Quantity, d.Unit, d.Evidence), true
	}
	if d, ok := b.Progress(); ok {
		return Text{Line: of(d.CommitmentID, d.Obligation, "progress on"), Below: below(Data{Value: d.Data})}, true
	}
	if d, ok := b.Waiver(); ok {
		return Text{Line: of(d.CommitmentID, d.Obligation, "waives"), Below: below(Prose{Text: d.Reason})}, true
	}
	if d, ok := b.Dispute(); ok {
		return Text{
			Line: words("", Word{Kind: OwnID, Text: d.DisputeID}, Word{Lead: "dispute: ", Kind: Code, Text: d.Ground, Tone: Bad},
				Word{Lead: ", severity ", Text: strconv.Itoa(d.Severity), Tone: Faint}),
			Below: below(append([]Part{Prose{Text: d.Claim}, Prose{Name: "remedy", Text: d.Remedy}}, files(d.Evidence)...)...),
		}, true
	}
	if d, ok := b.Reply(); ok {
		return Text{
			Line:  words("", Word{Kind: Reference, Lead: "reply to dispute ", Text: d.DisputeID}, Word{Lead: ": ", Text: d.Position}),
			Below: below(append([]Part{Prose{Text: d.Comment}, Prose{Name: "remedy", Text: d.Remedy}}, files(d.Evidence)...)...),
		}, true
	}
	if d, ok := b.Decides(); ok {
		return Text{
			Line:  words("", Word{Kind: Reference, Lead: "decision of dispute ", Text: d.DisputeID}, Word{Lead: ": ", Text: d.Decision}),
			Below: below(Prose{Text: d.Reason}, Data{Name: "award", Value: d.Award}),
		}, true
	}
	if d, ok := b.Event(); ok {
		return d.line(), true
	}
	return Text{}, false
}

func (e *EventData) line() Text {
	switch e.Event {
	case Breached:
		return Text{Line: append(of(e.CommitmentID, e.Obligation, "breached:"), Word{Lead: ": ", Text: "its deadline passed, and it is still due", Tone: Bad})}
	case Deemed:
		return Text{Line: append(of(e.CommitmentID, e.Obligation, "counts as accepted:"), Word{Lead: ": ", Text: "nobody answered the delivery in time"})}
	default:
		return Text{Line: words("", Word{Text: e.Event}, Word{Kind: Reference, Lead: ": ", Text: e.DisputeID + e.EscalationID}, Word{Lead: ": ", Text: e.Decision})}
	}
}

func (d *ResultData) text(says string, quantity *float64, unit string, evidence []Evidence) Text {
	line := of(d.CommitmentID, d.Obligation, says)
	if quantity != nil {
		much := inFull(*quantity)
		if unit != "" {
			much += " " + unit
		}
		line = append(line, Word{Lead: ": ", Text: much})
	}
	return Text{Line: line, Below: below(files(evidence)...)}
}

// of names an obligation.
func of(commitment string, obligation ObligationID, says string) []Word {
	return words("", Word{Text: says}, Word{Kind: Reference, Lead: " obligation ", Text: string(obligation)}, Word{Kind: Reference, Lead: " of ", Text: commitment})
}

func files(evidence []Evidence) []Part {
	var parts []Part
	for _, e := range evidence {
		parts = append(parts, Details{Words: faint(words(", ",
			Word{Name: "evidence", Text: e.Kind}, Word{Name: "digest", Text: string(e.Digest)}, Word{Name: "at", Text: e.URI}, Word{Name: "note", Text: e.Note}))})
	}
	return parts
}
