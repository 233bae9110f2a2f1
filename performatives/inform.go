package performatives

import (
	"time"

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
)

// InformBody tells something: a fact, a result, an error, progress, or a
// human's resolution of an escalation. Read InformType where Type is empty.
type InformBody struct {
	Type       string         `json:"type,omitzero" jsonschema:"enum=fact,enum=result,enum=error,enum=progress,enum=resolution,description=What kind of information"`
	InformType string         `json:"informType,omitzero" jsonschema:"enum=fact,enum=result,enum=error,enum=progress,enum=resolution,description=Another name for type; emit type"`
	Data       jsontext.Value `json:"data" jsonschema:"description=The information; answers to a CLARIFY and resolutions have a shape of their own"`
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

// An Answer settles the questions asked about one field.
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

// The decisions of a ruling.
const (
	Approved = "approved"
	Denied   = "denied"
	Modified = "modified"
	Guidance = "guidance"
)

// RulingData is the data of an INFORM resolution: a human's decision on an
// escalation (PROTOCOL.md §7).
type RulingData struct {
	EscalationID string            `json:"escalationId" jsonschema:"format=asp-id,description=The messageId of the ESCALATE"`
	Decision     string            `json:"decision" jsonschema:"enum=approved,enum=denied,enum=modified,enum=guidance"`
	Comment      string            `json:"comment,omitzero"`
	Authority    *RulingsAuthority `json:"authority,omitzero" jsonschema:"description=What the agent may do from now on\\, bounded"`
	Revision     *uint64           `json:"revision,omitzero" jsonschema:"description=Of the item that the human was shown; one that has changed since is not decided"`
	Shown        Hash              `json:"shown,omitzero" jsonschema:"pattern=^sha256:[0-9a-f]{64}$,description=The item's shown\\, of what the human was shown"`
}

func (r *RulingData) text() Text {
	tone := Good
	if r.Decision == Denied {
		tone = Bad
	}
	return Text{
		Line: words("",
			Word{Kind: Reference, Lead: "resolution of ", Text: r.EscalationID}, Word{Lead: ": ", Text: r.Decision, Tone: tone}),
		Below: below(r.Authority.details(), Prose{Text: r.Comment}),
	}
}

// RulingsAuthority bounds what an agent may agree to after a ruling.
type RulingsAuthority struct {
	MaxAmount  *float64   `json:"maxAmount,omitzero" jsonschema:"minimum=0,description=The highest amount in units of currency"`
	Currency   string     `json:"currency,omitzero" jsonschema:"pattern=^[A-Z]{3}$,description=ISO 4217 code"`
	TermPath   string     `json:"termPath,omitzero" jsonschema:"description=Dotted path of the amount in the proposal body\\, such as terms.pricePerMonth"`
	ValidUntil *time.Time `json:"validUntil,omitzero"`
}

func (a *RulingsAuthority) details() Details {
	if a == nil {
		return Details{}
	}
	var most Word
	if a.MaxAmount != nil {
		most = Word{Kind: Money, Lead: "at most ", Name: "at most", Amount: *a.MaxAmount, Text: a.Currency}
	}
	return Details{Words: words(", ", most, Word{Lead: "in ", Name: "at", Text: a.TermPath}, moment("until ", "until", a.ValidUntil))}
}

// Decision is the data of a resolution without what names its showing: what
// makes two rulings the same.
func (b *InformBody) Decision() []byte {
	data, err := split(nil, b.Data)
	if err != nil {
		return b.Data
	}
	return data.without("revision", "shown").bytes()
}

// Ruling reads the data of a resolution; ok is false for any other INFORM.
func (b *InformBody) Ruling() (data RulingData, ok bool) {
	if b.Kind() != Resolution {
		return RulingData{}, false
	}
	return data, json.Unmarshal(b.Data, &data) == nil && data.EscalationID != ""
}
