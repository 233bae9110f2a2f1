package performatives

// A Binding is what makes an agreement of an offer in binding/1, and what any other
// mode puts into the agreement if it is there.
type Binding struct {
	AgreementSalt      string `json:"agreementSalt,omitzero" jsonschema:"pattern=^[A-Za-z0-9_-]{43}$,description=32 secret bytes in base64url; the salts of all terms derive from them"`
	EffectiveFrom      string `json:"effectiveFrom,omitzero" jsonschema:"format=date-time,description=When the agreement begins"`
	EffectiveUntil     string `json:"effectiveUntil,omitzero" jsonschema:"format=date-time,description=When the agreement ends; absent is never"`
	Category           string `json:"category,omitzero" jsonschema:"minLength=1,maxLength=128,description=What the agreement is about\\, such as pricing or scheduling"`
	Round              *int64 `json:"round,omitzero" jsonschema:"description=How many offers there are with this one"`
	AgreementSignature string `json:"agreementSignature,omitzero" jsonschema:"minLength=1,description=The sender's Ed25519 signature over the agreement_hash\\, in base64url"`
}

// Binds is the binding itself, to read or to set.
func (b *Binding) Binds() *Binding { return b }

func (b *Binding) agreement() []Part {
	return []Part{Details{Words: faint(words(" · ",
		Word{Lead: "category ", Name: "category", Text: b.Category},
		Word{Lead: "effective from ", Name: "effective from", Text: b.EffectiveFrom},
		Word{Lead: "effective until ", Name: "effective until", Text: b.EffectiveUntil}))}}
}
