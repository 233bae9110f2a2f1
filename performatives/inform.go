package performatives

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The types of an INFORM.
const (
	Fact        = "fact"
	Result      = "result"
	ErrorReport = "error"
	Progress    = "progress"
	Resolution  = "resolution"
	Waiver      = "waiver"
	Dispute     = "dispute"
	Reply       = "reply"
	Event       = "event" // the broker's own
	Endorsement = "endorsement"
	Rating      = "rating"
)

// InformBody tells something: a fact, a result, an error, progress, a human's
// resolution of an escalation, or how a commitment is carried out. Read InformType where Type is empty.
type InformBody struct {
	Type       string         `json:"type,omitzero" jsonschema:"enum=fact,enum=result,enum=error,enum=progress,enum=resolution,enum=waiver,enum=dispute,enum=reply,enum=event,enum=endorsement,enum=rating,description=What kind of information"`
	InformType string         `json:"informType,omitzero" jsonschema:"enum=fact,enum=result,enum=error,enum=progress,enum=resolution,enum=waiver,enum=dispute,enum=reply,enum=event,enum=endorsement,enum=rating,description=Another name for type; emit type"`
	Data       jsontext.Value `json:"data" jsonschema:"description=The information; answers to a CLARIFY\\, resolutions\\, and what is said of commitments and disputes have shapes of their own"`
}

var _ = enter("INFORM", Information, func() Body { return new(InformBody) })

// Act is INFORM.
func (*InformBody) Act() Performative { return Inform }

// ID is "": nothing refers to an INFORM.
func (*InformBody) ID(MessageID) string { return "" }

// Refers is the question or offer that the answers are about, or the escalation
// that is ruled on.
func (b *InformBody) Refers() string {
	if answers, ok := b.Answers(); ok {
		return answers.ReferenceID
	}
	ruling, _ := b.Ruling()
	return ruling.EscalationID
}

// Text is how the act reads.
func (b *InformBody) Text() Text {
	if answers, ok := b.Answers(); ok {
		return Text{
			Line:  words("", Word{Kind: Reference, Lead: "answers about ", Text: answers.ReferenceID}),
			Below: below(Answered(answers.Answers)),
		}
	}
	if ruling, ok := b.Ruling(); ok {
		return ruling.text()
	}
	if text, ok := b.executed(); ok {
		return text
	}
	return Text{Line: words("", Word{Text: b.Kind()}), Below: below(Data{Value: b.Data})}
}

// Kind is the type, under whichever of its two names it came.
func (b *InformBody) Kind() string {
	if b.Type != "" {
		return b.Type
	}
	return b.InformType
}

// AnswersData is the data of an INFORM fact that answers a CLARIFY.
type AnswersData struct {
	ReferenceID string   `json:"referenceId"`
	Answers     []Answer `json:"answers"`
}

// An Answer answers the questions asked about one field.
type Answer struct {
	Field  string         `json:"field"`
	Answer jsontext.Value `json:"answer"`
}

// Answers reads the data as answers to a CLARIFY; ok is false when it is
// something else, which is no fault: an INFORM may tell anything.
func (b *InformBody) Answers() (data AnswersData, ok bool) {
	if b.Kind() != Fact || b.Data.Kind() != '{' {
		return AnswersData{}, false
	}
	if json.Unmarshal(b.Data, &data) != nil || data.ReferenceID == "" {
		return AnswersData{}, false
	}
	for _, a := range data.Answers {
		if a.Field == "" || len(a.Answer) == 0 {
			return AnswersData{}, false
		}
	}
	return data, len(data.Answers) > 0
}

// Query is the id of the query that an INFORM of any type says it answers, by
// data.queryId or data.referenceId; "" for none.
func (b *InformBody) Query() string {
	var data struct {
		QueryID     jsontext.Value `json:"queryId"`
		ReferenceID jsontext.Value `json:"referenceId"`
	}
	if b.Data.Kind() != '{' || json.Unmarshal(b.Data, &data) != nil {
		return ""
	}
	for _, id := range []jsontext.Value{data.QueryID, data.ReferenceID} {
		var text string
		if id.Kind() == '"' && json.Unmarshal(id, &text) == nil {
			return text
		}
	}
	return ""
}
