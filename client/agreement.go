package client

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
)

// An Agreement is what an offer of binding/1 becomes once it is accepted, besides its terms.
type Agreement struct {
	With     performatives.Agent // the other party
	From     time.Time           // when it begins
	Until    time.Time           // when it ends; zero is never
	Category string              // such as pricing

	Inherited agreement.Inherited // ccc and regulatedObligations of the session's view, if it has them
}

var (
	errNoSigner   = errors.New("client: an agreement is signed, and this client has no key")
	errNotAnOffer = errors.New("client: Bind goes with PROPOSE and COUNTER")
	errNotAccept  = errors.New("client: Sign goes with the ACCEPT of an offer of binding/1")
)

// Bind signs an offer as the agreement that it becomes: it draws the salt of the terms, and
// signs the agreement's hash.
func Bind(a Agreement) ActOption {
	return func(m *act) error {
		body, ok := m.Body.(performatives.Binder)
		if !ok {
			return errNotAnOffer
		}
		var salt agreement.Salt
		rand.Read(salt[:])
		b := body.Binds()
		b.AgreementSalt = base64.RawURLEncoding.EncodeToString(salt[:])
		b.Category, b.EffectiveFrom = a.Category, a.From.UTC().Format(time.RFC3339)
		if !a.Until.IsZero() {
			b.EffectiveUntil = a.Until.UTC().Format(time.RFC3339)
		}
		m.sign = func(signer performatives.Signer) (err error) {
			b.AgreementSignature, err = signAs(signer, m.Session, m.Body, m.ref(), a.Inherited, m.Sender, a.With)
			return err
		}
		return nil
	}
}

// Sign signs the agreement that an offer becomes by this ACCEPT. The hash is made of the
// offer as it was received, not of what a broker says. inherited are ccc and
// regulatedObligations of the session's view, if it has them.
func Sign(offer *Message, inherited ...agreement.Inherited) ActOption {
	return func(m *act) error {
		body, ok := m.Body.(*performatives.AcceptBody)
		if !ok || body.ReferenceID != offer.Ref() {
			return errNotAccept
		}
		by := offer.From()
		if offer.OnBehalfOf() != "" {
			by = offer.OnBehalfOf()
		}
		m.sign = func(signer performatives.Signer) (err error) {
			body.AgreementSignature, err = signAs(signer, m.Session, offer.Body(), offer.Ref(), append(inherited, agreement.Inherited{})[0], by, m.Sender)
			return err
		}
		return nil
	}
}

// signAs signs the agreement of two parties on an offer.
func signAs(signer performatives.Signer, s performatives.SessionID, offer performatives.Body, id string, c agreement.Inherited, parties ...performatives.Agent) (string, error) {
	if signer == nil {
		return "", errNoSigner
	}
	signature, err := agreement.SignOffer(signer, s, offer, id, c, parties...)
	if errors.Is(err, agreement.ErrNotBinding) {
		return "", errNotAccept
	}
	return signature, err
}
