package performatives

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

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
	Sealed       Digests           `json:"sealed,omitzero" jsonschema:"description=Digests of authority and comment\\, which go to the human's own side only"`
	Revision     *uint64           `json:"revision,omitzero" jsonschema:"description=Of the item that the human was shown; one that has changed since is not decided"`
	ViewHash     Hash              `json:"shown,omitzero" jsonschema:"pattern=^sha256:[0-9a-f]{64}$,description=The item's shown\\, of what the human was shown"`
}

func (r *RulingData) text() Text {
	tone := Good
	if r.Decision == Denied {
		tone = Bad
	}
	return Text{
		Line: words("",
			Word{Kind: Reference, Lead: "resolution of ", Text: r.EscalationID}, Word{Lead: ": ", Text: r.Decision, Tone: tone}),
		Below: below(r.Authority.details(), Prose{Text: r.Comment}, r.Sealed.text()),
	}
}

// RulingsAuthority bounds what an agent may agree to after a ruling. All that it
// names holds. MaxAmount, Currency and TermPath are short for one bound with a max.
type RulingsAuthority struct {
	MaxAmount  *float64       `json:"maxAmount,omitzero" jsonschema:"minimum=0,description=The highest amount in units of currency"`
	Currency   string         `json:"currency,omitzero" jsonschema:"pattern=^[A-Z]{3}$,description=ISO 4217 code"`
	TermPath   string         `json:"termPath,omitzero" jsonschema:"description=Dotted path of the amount in the proposal body\\, such as terms.pricePerMonth"`
	Bounds     []RulingsBound `json:"bounds,omitzero" jsonschema:"minItems=1,maxItems=64,description=Bounds on single terms\\, all of them in force"`
	TermsHash  Hash           `json:"termsHash,omitzero" jsonschema:"pattern=^sha256:[0-9a-f]{64}$,description=SHA-256 over the RFC 8785 form of the terms that the human was shown: these and no others"`
	ValidUntil *time.Time     `json:"validUntil,omitzero"`
	Scope      string         `json:"scope,omitzero" jsonschema:"enum=session,enum=thread,description=What the authority holds for: the whole session (by default)\\, or the thread of the offer at stake only"`
}

// ThreadScope narrows an authority to the thread of the offer at stake.
const ThreadScope = "thread"

// A RulingsBound is a limit on one term: exactly one of max, min and equals.
type RulingsBound struct {
	TermPath string         `json:"termPath" jsonschema:"minLength=1,description=Dotted path in the proposal body\\, such as terms.pricePerMonth"`
	Max      *float64       `json:"max,omitzero" jsonschema:"oneof_required=max,description=The highest value"`
	Min      *float64       `json:"min,omitzero" jsonschema:"oneof_required=min,description=The lowest value"`
	Equals   jsontext.Value `json:"equals,omitzero" jsonschema:"oneof_required=equals,description=The only value"`
	Currency string         `json:"currency,omitzero" jsonschema:"pattern=^[A-Z]{3}$,description=ISO 4217 code of an amount"`
}

// Boundless reports whether the authority sets no bound; it may still end at a time.
func (a *RulingsAuthority) Boundless() bool {
	return a == nil || a.MaxAmount == nil && len(a.Bounds) == 0 && a.TermsHash == ""
}

// Empty reports whether the authority says nothing.
func (a *RulingsAuthority) Empty() bool {
	return a == nil || a.MaxAmount == nil && a.Currency == "" && a.TermPath == "" && len(a.Bounds) == 0 && a.TermsHash == "" && a.ValidUntil == nil
}

func (b *RulingsBound) String() string {
	var says string
	switch {
	case b.Max != nil:
		says = "at most " + inFull(*b.Max)
	case b.Min != nil:
		says = "at least " + inFull(*b.Min)
	default:
		says = "exactly " + string(b.Equals)
	}
	if b.Currency != "" {
		says += " " + b.Currency
	}
	return b.TermPath + " " + says
}

func inFull(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func (a *RulingsAuthority) details() Details {
	if a == nil {
		return Details{}
	}
	var most, exactly Word
	if a.MaxAmount != nil {
		most = Word{Kind: Money, Lead: "at most ", Name: "at most", Amount: *a.MaxAmount, Text: a.Currency}
	}
	all := []Word{most, {Lead: "in ", Name: "at", Text: a.TermPath}}
	for _, b := range a.Bounds {
		all = append(all, Word{Name: "bound", Text: b.String()})
	}
	if a.TermsHash != "" {
		exactly = Word{Lead: "exactly these terms: ", Name: "terms", Text: string(a.TermsHash)}
	}
	var narrow Word
	if a.Scope == ThreadScope {
		narrow = Word{Name: "scope", Text: "in this thread only"}
	}
	return Details{Words: words(", ", append(all, exactly, moment("until ", "until", a.ValidUntil), narrow)...)}
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
