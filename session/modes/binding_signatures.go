package modes

import (
	"time"

	"github.com/go-json-experiment/json"

	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
)

// offerSigned verifies the author's signature over the agreement that the offer makes.
func offerSigned(t *session.Command) error {
	hash, err := agreementOf(t)
	if err != nil {
		return session.RefuseSchema(session.Fault{Path: "/terms", Rule: "type", Message: "the terms make no agreement: " + err.Error()})
	}
	if binds(t).AgreementSignature == "" { // in OAP's form: it is to come
		return nil
	}
	return signed(t, hash, binds(t).AgreementSignature)
}

// inOAP reports whether the act carries what its party has signed in OAP's form.
func inOAP(t *session.Command) bool {
	return !t.Before(4) && len(agreement.OAPIn(t.Message.Context)) > 0
}

// offered is what the offer of this act offers.
func offered(t *session.Command) agreement.Offer {
	b, o := binds(t), t.Offering()
	salt, _ := agreement.ParseSalt(b.AgreementSalt)
	return agreement.Offer{
		Session: t.Message.Session, Proposal: o.ID, Parties: []asp.Agent{t.Side, t.Other(t.Side)},
		Terms: o.Terms, Salt: salt, Binding: *b, Inherited: agreement.InheritedOf(&t.State),
	}
}

// agreementOf is the hash of the agreement that the offer of this act makes.
func agreementOf(t *session.Command) (agreement.Digest, error) {
	d, err := agreement.Draft(offered(t))
	return d.Hash, err
}

// acceptedHash is the hash of the agreement that this ACCEPT makes: without a date of its own
// it begins now.
func (b binding) acceptedHash(t *session.Command) (agreement.Digest, error) {
	if b.hash != "" {
		return b.hash, nil
	}
	b.offer.EffectiveFrom = t.At.UTC().Format(asp.TimeFormat)
	d, err := agreement.Draft(b.offer)
	return d.Hash, err
}

// acceptanceSigned verifies the signature of who accepts over the same agreement.
func acceptanceSigned(t *session.Command) error {
	body, ok := t.Message.Body.(*asp.AcceptBody)
	if !ok {
		return nil
	}
	b := bound(&t.State)
	hash, err := b.acceptedHash(t)
	if err != nil {
		return err
	}
	if until, err := time.Parse(time.RFC3339, b.offer.EffectiveUntil); b.hash == "" && err == nil && !until.After(t.At) {
		return session.Violation("effective_until", "the agreement would begin now, and it ends at %s: make another offer", b.offer.EffectiveUntil)
	}
	switch {
	case body.AgreementSignature == "" && inOAP(t):
		return nil
	case body.AgreementSignature == "":
		return session.RefuseSchema(session.Fault{Path: "/agreementSignature", Rule: "required", Message: "agreementSignature is required in mode binding/1"})
	}
	return signed(t, hash, body.AgreementSignature)
}

// laterSignature is the party's signature over the agreement that an INFORM brings after the
// acceptance; "" for none.
func laterSignature(t *session.Command) string {
	body, informs := t.Message.Body.(*asp.InformBody)
	if !informs || t.Before(4) {
		return ""
	}
	var data struct {
		Signature string `json:"agreementSignature"`
	}
	if body.Data.Kind() != '{' || json.Unmarshal(body.Data, &data) != nil {
		return ""
	}
	return data.Signature
}

// signedLater verifies the signature that an INFORM brings: each party makes one.
func signedLater(t *session.Command) error {
	signature, b := laterSignature(t), bound(&t.State)
	if signature == "" {
		return nil
	}
	if b.status != statusAccepted {
		return session.Violation("signature", "there is no agreement to sign yet")
	}
	if _, has := b.signatures[t.Side]; has {
		return session.Violation("signature", "%s has signed the agreement already", t.Side)
	}
	return signed(t, b.hash, signature)
}

// signed insists on a key of the party, also of a delegate: a stolen or borrowed signature
// binds nobody. That is its own key, or the one that the installation signs its entries with.
// A party that joined without a key, under --dev, has none.
func signed(t *session.Command, hash agreement.Digest, signature string) error {
	key, own := t.PartyKey(t.Side), t.OwnKey(t.Side)
	if t.Draft() || key == "" || agreement.SignedBy(own, hash, signature) || agreement.SignedBy(key, hash, signature) {
		return nil
	}
	return session.Refuse(session.SignatureInvalid, "agreementSignature is not of the key of %s over the agreement_hash %s", t.Side, hash).
		With(map[string]any{"agreementHash": hash})
}
