package performatives

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// CommitBody makes a binding commitment.
type CommitBody struct {
	CommitmentID   string           `json:"commitmentId" jsonschema:"format=asp-id,description=The commitment's own id"`
	ReferenceID    string           `json:"referenceId,omitzero" jsonschema:"format=asp-id,description=The accepted proposal that it carries out"`
	Terms          *CommitmentTerms `json:"terms,omitzero" jsonschema:"description=Required outside convergent/1"`
	Deadline       *time.Time       `json:"deadline,omitzero"`
	Escrow         *Escrow          `json:"escrow,omitzero"`
	Outcome        string           `json:"outcome,omitzero" jsonschema:"enum=agreed,enum=rejected,description=By default agreed"`
	Action         string           `json:"action,omitzero"`
	AuthorityScope string           `json:"authorityScope,omitzero"`
	ModeVersion    string           `json:"modeVersion,omitzero" jsonschema:"description=In convergent/1 the pinned one"`
	PolicyVersion  string           `json:"policyVersion,omitzero" jsonschema:"description=In convergent/1 the pinned one"`
	Reason         string           `json:"reason,omitzero"`
}

// CommitmentTerms say who owes what.
type CommitmentTerms struct {
	Obligations []Obligation `json:"obligations" jsonschema:"minItems=1"`
	Penalties   any          `json:"penalties,omitzero"`
}

// An Obligation is one thing that one party has to do.
type Obligation struct {
	ID                 string     `json:"id,omitzero" jsonschema:"format=asp-id,description=By default its index\\, from 0"`
	Party              Agent      `json:"party" jsonschema:"format=asp-principal,description=A principal with a part in the session"`
	Action             string     `json:"action" jsonschema:"minLength=1"`
	Deadline           *time.Time `json:"deadline,omitzero" jsonschema:"description=When it has to be delivered\\, judged by the broker's clock"`
	Quantity           *float64   `json:"quantity,omitzero" jsonschema:"exclusiveMinimum=0,description=How much has to be delivered\\, in unit"`
	Unit               string     `json:"unit,omitzero" jsonschema:"maxLength=64"`
	Amount             *Worth     `json:"amount,omitzero" jsonschema:"description=What it is worth. parley moves no money"`
	VerificationMethod string     `json:"verificationMethod,omitzero"`
	AcceptanceWindowMs int64      `json:"acceptanceWindowMs,omitzero" jsonschema:"minimum=1,maximum=31536000000,description=How long a delivery waits to be accepted or rejected before it counts as accepted; 72 h by default\\, at most 365 d"`
}

// Worth is a value in a currency.
type Worth struct {
	Value    float64 `json:"value" jsonschema:"minimum=0"`
	Currency string  `json:"currency" jsonschema:"pattern=^[A-Z]{3}$,description=ISO 4217 code"`
}

// Escrow names what is held until a condition is met. parley records it; it
// moves no money.
type Escrow struct {
	Amount           float64 `json:"amount,omitzero" jsonschema:"minimum=0"`
	Currency         string  `json:"currency,omitzero" jsonschema:"pattern=^[A-Z]{3}$,description=ISO 4217 code"`
	ReleaseCondition string  `json:"releaseCondition,omitzero"`
}

var _ = enter("COMMIT", Action, func() Body { return new(CommitBody) })

// Act is COMMIT.
func (*CommitBody) Act() Performative { return Commit }

// ID is the commitmentId.
func (b *CommitBody) ID(MessageID) string { return b.CommitmentID }

// SetID sets the commitmentId.
func (b *CommitBody) SetID(id string) { b.CommitmentID = id }

// Refers is the proposal that it carries out.
func (b *CommitBody) Refers() string { return b.ReferenceID }

// Because sets the reason.
func (b *CommitBody) Because(reason string) { b.Reason = reason }

// Text is how the act reads.
func (b *CommitBody) Text() Text {
	line := words("", Word{Kind: OwnID, Text: b.CommitmentID}, Word{Kind: Reference, Lead: "on ", Text: b.ReferenceID})
	facts := faint(words(", ", Word{Text: b.Outcome}, Word{Text: b.Action}, Word{Text: b.AuthorityScope}, moment("by ", "deadline", b.Deadline)))
	if len(facts) > 0 {
		facts[0].Lead = "  " + facts[0].Lead
	}
	return Text{
		Line:  append(line, facts...),
		Below: below(slices.Concat(b.Terms.parts(), []Part{b.Escrow.details(), Prose{Text: b.Reason}})...),
	}
}

// parts say who owes what.
func (t *CommitmentTerms) parts() []Part {
	if t == nil {
		return nil
	}
	var parts []Part
	for _, o := range t.Obligations {
		var much Word
		if o.Quantity != nil {
			much = Word{Lead: ", ", Text: strings.TrimSpace(inFull(*o.Quantity) + " " + o.Unit)}
		}
		head := words("", Word{Text: o.Action})
		if o.Amount != nil {
			head = append(head, Word{Kind: Money, Lead: " ", Amount: o.Amount.Value, Text: o.Amount.Currency})
		}
		facts := words("", much, moment(", by ", "", o.Deadline), Word{Lead: ", verified by ", Text: o.VerificationMethod})
		parts = append(parts, Details{o.Party, append(head, faint(facts)...)})
	}
	if t.Penalties != nil {
		if raw, err := json.Marshal(map[string]any{"penalties": t.Penalties}, json.Deterministic(true)); err == nil {
			parts = append(parts, Data{Value: raw})
		}
	}
	return parts
}

func (e *Escrow) details() Details {
	if e == nil {
		return Details{}
	}
	return Details{Words: words(", ",
		Word{Kind: Money, Lead: "escrow ", Name: "escrow", Amount: e.Amount, Text: e.Currency},
		Word{Lead: "released when: ", Name: "released when", Text: e.ReleaseCondition})}
}
