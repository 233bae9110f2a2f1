package agreement

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// ErrNotBinding is for an offer that says too little to be signed.
var ErrNotBinding = errors.New("agreement: the offer has no agreementSalt, or is none")

// SignOffer signs the agreement that an offer becomes between two parties, who made the
// offer first. The signer is one of them.
func SignOffer(signer performatives.Signer, s performatives.SessionID, offer performatives.Body, id string, c Inherited, parties ...performatives.Agent) (string, error) {
	hash, err := hashOf(s, offer, id, c, parties)
	if err != nil {
		return "", err
	}
	return Sign(signer, hash)
}

// hashOf is what two parties sign of an offer.
func hashOf(s performatives.SessionID, offer performatives.Body, id string, c Inherited, parties []performatives.Agent) (Digest, error) {
	offering, makes := offer.(performatives.Offering)
	binder, binds := offer.(performatives.Binder)
	if !makes || !binds {
		return "", ErrNotBinding
	}
	salt, ok := ParseSalt(binder.Binds().AgreementSalt)
	if !ok {
		return "", ErrNotBinding
	}
	d, err := Draft(Offer{
		Session: s, Proposal: id, Parties: parties, Terms: offering.Offer().Terms, Salt: salt, Binding: *binder.Binds(), Inherited: c,
	})
	if err != nil {
		return "", fmt.Errorf("the terms make no agreement: %w", err)
	}
	return d.Hash, nil
}

// A Party makes what a hosted agent leaves out of an act in binding/1. The same act is
// completed in the same way.
type Party struct {
	Signer  performatives.Signer // nil signs nothing (--dev)
	Session performatives.SessionID
	Message performatives.MessageID
	At      time.Time // when an agreement begins whose offer does not say
	Self    performatives.Agent
	Other   performatives.Agent
	Offer   performatives.Body // that an ACCEPT is of

	Inherited Inherited // that the session inherits
}

// OfferIn is the body of the first of some entries, nil for none.
func OfferIn(entries []jsontext.Value) (performatives.Body, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	m, _, _, err := performatives.ReadDelivered(entries[0])
	if err == nil {
		err = m.DecodeBody()
	}
	if err != nil {
		return nil, err
	}
	return m.Body, nil
}

// Complete adds to the body of a PROPOSE, COUNTER or ACCEPT the salt, the beginning and the
// signature of the agreement, unless they are there. A body that it cannot read stays as it
// is: the protocol refuses it.
func (p Party) Complete(act performatives.Performative, body jsontext.Value) (jsontext.Value, error) {
	members := map[string]jsontext.Value{}
	if json.Unmarshal(body, &members) != nil || members == nil {
		return body, nil //nolint:nilerr // the protocol refuses it
	}
	add := func(name, value string) {
		if _, given := members[name]; !given {
			members[name], _ = json.Marshal(value) // base64 and digits
		}
	}
	if act == performatives.Propose || act == performatives.Counter {
		salt, err := p.salt()
		if err != nil {
			return nil, err
		}
		add("agreementSalt", base64.RawURLEncoding.EncodeToString(salt[:]))
		add("effectiveFrom", p.At.UTC().Format(time.RFC3339))
	}
	completed, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	signature, err := p.sign(act, completed)
	if errors.Is(err, ErrNotBinding) {
		return body, nil // the protocol says what it lacks
	}
	if err != nil {
		return nil, err
	}
	add("agreementSignature", signature)
	return json.Marshal(members, json.Deterministic(true))
}

// Later reports whether a body accepts an offer whose agreement begins with the acceptance, and does not sign it: it can
// be signed once it is accepted.
func (p Party) Later(body jsontext.Value) bool {
	var said struct {
		Signature jsontext.Value `json:"agreementSignature"`
	}
	b, binds := p.Offer.(performatives.Binder)
	if !binds || b.Binds().EffectiveFrom != "" {
		return false
	}
	_, salted := ParseSalt(b.Binds().AgreementSalt) // the invitation is not
	return salted && json.Unmarshal(body, &said) == nil && said.Signature == nil
}

// Accepts is the context of an ACCEPT that signs later: the acceptance in OAP's form.
func (p Party) Accepts(reference string) ([]jsontext.Value, error) {
	document := map[string]string{"proposal_id": reference}
	data, err := canonical(document)
	if err != nil {
		return nil, err
	}
	signer := p.Signer
	if signer == nil {
		signer = nobody{}
	}
	signature, err := signer.Sign(data)
	if err != nil {
		return nil, err
	}
	document["signature"] = encoding.EncodeToString(signature)
	if data, err = canonical(document); err != nil {
		return nil, err
	}
	return OAPContext(data)
}

// SignAccepted signs the agreement that an ACCEPT has made, which begins when it was accepted.
func (p Party) SignAccepted(body jsontext.Value, acceptedAt string) (string, error) {
	if b, binds := p.Offer.(performatives.Binder); binds {
		b.Binds().EffectiveFrom = acceptedAt
	}
	return p.sign(performatives.Accept, body)
}

// sign signs the agreement that the act's own offer, or the one that it accepts, becomes.
func (p Party) sign(act performatives.Performative, body jsontext.Value) (string, error) {
	said := performatives.Message{Performative: act, RawBody: body}
	if said.DecodeBody() != nil {
		return "", ErrNotBinding
	}
	offer, id, parties := said.Body, said.Body.ID(p.Message), []performatives.Agent{p.Self, p.Other}
	if act == performatives.Accept {
		offer, id, parties = p.Offer, said.Body.Refers(), []performatives.Agent{p.Other, p.Self}
	}
	signer := p.Signer
	if signer == nil {
		signer = nobody{}
	}
	hash, err := hashOf(p.Session, offer, id, p.Inherited, parties)
	if err != nil {
		return "", ErrNotBinding
	}
	return Sign(signer, hash)
}

// salt derives from a signature, which nobody else can make.
func (p Party) salt() (Salt, error) {
	said := []byte("parley agreement salt\n" + string(p.Session) + "\n" + string(p.Message))
	if p.Signer == nil {
		return sha256.Sum256(said), nil
	}
	signature, err := p.Signer.Sign(said)
	return sha256.Sum256(signature), err
}

// nobody stands in for a key where there is none: --dev verifies no signature.
type nobody struct{}

func (nobody) Key() performatives.Key { return "" }

func (nobody) Sign([]byte) ([]byte, error) { return make([]byte, 64), nil }
