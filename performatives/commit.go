package performatives

import "time"

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
	Reason         string           `json:"reason,omitzero"`
}

// CommitmentTerms say who owes what.
type CommitmentTerms struct {
	Obligations []Obligation `json:"obligations" jsonschema:"minItems=1"`
	Penalties   any          `json:"penalties,omitzero"`
}

// An Obligation is one thing that one party has to do.
type Obligation struct {
	Party              Agent      `json:"party" jsonschema:"format=asp-principal,description=A principal with a part in the session"`
	Action             string     `json:"action" jsonschema:"minLength=1"`
	Deadline           *time.Time `json:"deadline,omitzero"`
	VerificationMethod string     `json:"verificationMethod,omitzero"`
}

// Escrow names what is held until a condition is met. parley records it; it
// moves no money.
type Escrow struct {
	Amount           float64 `json:"amount,omitzero" jsonschema:"minimum=0"`
	Currency         string  `json:"currency,omitzero" jsonschema:"pattern=^[A-Z]{3}$,description=ISO 4217 code"`
	ReleaseCondition string  `json:"releaseCondition,omitzero"`
}

// Act is COMMIT.
func (*CommitBody) Act() Performative { return Commit }

var _ = enter(func() Body { return new(CommitBody) })
