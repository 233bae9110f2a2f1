// Package agreement builds and verifies agreements: what two or more principals agreed
// on, in one file that proves itself.
//
// A [Document] has every term beside a salt and a digest of both, and a hash over the
// digests. A term can be taken out together with its salt, and the hash still holds
// ([Document.Redact]). What the hash stands for is proven by the parties' signatures
// over it, or by the signed entries of the offer and its acceptance ([Verify]).
package agreement

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/session/transcript"
)

// A Core is what the hash of an agreement covers.
type Core struct {
	ID             ID                `json:"agreement_id"`
	Negotiation    NegotiationID     `json:"negotiation_id"`
	Parties        []DID             `json:"parties"` // who made the offer comes first
	Category       string            `json:"category,omitzero"`
	Digests        map[string]Digest `json:"terms_digests"`
	EffectiveFrom  string            `json:"effective_from"`
	EffectiveUntil string            `json:"effective_until,omitzero"`
	CCC            jsontext.Value    `json:"ccc,omitzero"`
	Obligations    jsontext.Value    `json:"regulated_obligations,omitzero"`
}

// Hash is the agreement_hash.
func (c Core) Hash() (Digest, error) {
	data, err := canonical(c)
	return digestOf(data), err
}

// A Document is an agreement. Its members are those of GATEWAYS.md G4.
type Document struct {
	Core
	Terms      map[string]jsontext.Value `json:"terms"` // all of them, or those that redaction has left
	Salts      map[string]string         `json:"salts"`
	Hash       Digest                    `json:"agreement_hash"`
	Signatures map[DID]string            `json:"signatures,omitzero"` // over the hash, in binding/1
	Evidence   *Evidence                 `json:"evidence,omitzero"`
	Log        *inclusion.Proof          `json:"log,omitzero"` // not covered by the hash
}

// Evidence is the entries of the transcript that made the agreement, as they were
// delivered, and the keys that signed. A redacted document has the keys only.
type Evidence struct {
	Offer      jsontext.Value                              `json:"offer,omitzero"`
	Commitment jsontext.Value                              `json:"commitment,omitzero"`    // that carries the offer out
	Acceptance jsontext.Value                              `json:"acceptance,omitzero"`    // of the commitment, else of the offer
	Close      jsontext.Value                              `json:"close,omitzero"`         // that made it of agreed terms
	Confirmed  []jsontext.Value                            `json:"confirmations,omitzero"` // the rulings by which people confirmed it
	Keys       map[performatives.Agent]performatives.Key   `json:"keys,omitzero"`
	Rotated    map[performatives.Agent][]performatives.Key `json:"rotated,omitzero"`  // that signed other entries of theirs
	DIDKeys    map[performatives.Agent]performatives.Key   `json:"did_keys,omitzero"` // that signed the hash, where Keys has those of the entries
	DIDs       map[performatives.Agent]DID                 `json:"dids,omitzero"`     // of parties that have registered another than their own host's
}

// An Offer is what an agreement would be about: what its author signs in binding/1.
type Offer struct {
	Session  performatives.SessionID
	Proposal string
	Parties  []performatives.Agent // who makes the offer comes first
	Terms    performatives.Object
	Salt     Salt
	performatives.Binding
	Inherited Inherited
}

// Draft is the document of an offer before anybody has signed it.
func Draft(o Offer) (Document, error) {
	d := Document{Core: Core{
		ID: IDOf(o.Session, o.Proposal), Negotiation: o.Inherited.negotiation(o.Session), Category: o.Category,
		EffectiveFrom: o.EffectiveFrom, EffectiveUntil: o.EffectiveUntil,
		CCC: o.Inherited.CCC, Obligations: o.Inherited.Obligations,
	}}
	for _, a := range o.Parties {
		d.Parties = append(d.Parties, o.Inherited.DIDOf(a))
	}
	err := json.Unmarshal(o.Terms, &d.Terms)
	if err != nil {
		return d, err
	}
	if d.Salts, d.Digests, err = o.Salt.salted(d.Terms); err != nil {
		return d, err
	}
	d.Hash, err = d.Core.Hash()
	return d, err
}

// An Accepted is an offer and its acceptance, as a transcript has them.
type Accepted struct {
	Name              string                         // of the offer in the session; "" is its own id
	Parties           []performatives.Agent          // who made the offer comes first
	Signatures        map[performatives.Agent]string // made after the acceptance
	Offer, Acceptance transcript.Entry
	Commitment, Close transcript.Entry                            // without a message if there is none
	Confirmations     []transcript.Entry                          // the rulings, in their order
	Keys              map[performatives.Agent][]performatives.Key // that were pinned for them and the two senders, the newest first
	Inherited         Inherited
}

// signer is the key that signed, the newest if none did. An only key needs no check.
func (a Accepted) signer(of performatives.Agent, signed func(performatives.Key) bool) performatives.Key {
	switch keys := a.Keys[of]; len(keys) {
	case 0:
		return ""
	case 1:
		return keys[0]
	default:
		return keys[max(0, slices.IndexFunc(keys, signed))]
	}
}

var errNoOffer = errors.New("the entry makes no offer")

// Build makes the agreement of an accepted offer. Without a salt of its author's the
// salt derives from the author's signature, which only the participants know; without a
// date the agreement begins when it was accepted.
func Build(a Accepted) (Document, error) {
	terms, err := a.terms()
	if err != nil {
		return Document{}, err
	}
	o := Offer{
		Session: a.Offer.Message.Session, Proposal: cmp.Or(a.Name, a.Offer.Message.Body.ID(a.Offer.Message.ID)),
		Parties: a.Parties, Terms: terms, Salt: saltOf(a.Offer.Message), Inherited: a.Inherited,
	}
	if b, binds := a.Offer.Message.Body.(performatives.Binder); binds {
		o.Binding = *b.Binds()
	}
	if o.EffectiveFrom == "" {
		o.EffectiveFrom = a.made().Stamp.Receipt.AcceptedAt
	}
	d, err := Draft(o)
	if err != nil {
		return d, err
	}
	d.Evidence = &Evidence{
		Offer: a.Offer.Bytes, Commitment: a.Commitment.Bytes, Acceptance: a.Acceptance.Bytes, Close: a.Close.Bytes,
		Keys: map[performatives.Agent]performatives.Key{},
	}
	for _, e := range a.Confirmations {
		d.Evidence.Confirmed = append(d.Evidence.Confirmed, e.Bytes)
	}
	for _, e := range append([]transcript.Entry{a.Offer, a.Commitment, a.Acceptance, a.Close}, a.Confirmations...) {
		if m := e.Message; m != nil {
			d.Evidence.know(m.Sender, a.signer(m.Sender, func(k performatives.Key) bool { return m.VerifySignature(k) == nil }))
		}
	}
	for _, party := range a.Parties {
		if did, registered := a.Inherited.DIDs[party]; registered {
			if d.Evidence.DIDs == nil {
				d.Evidence.DIDs = map[performatives.Agent]DID{}
			}
			d.Evidence.DIDs[party] = did
		}
	}
	d.sign(a, o.AgreementSignature)
	return d, nil
}

// sign takes in the signatures over the hash, if both parties made them: modes other than
// binding/1 do not check them.
func (d *Document) sign(a Accepted, offered string) {
	accept, is := a.Acceptance.Message.Body.(*performatives.AcceptBody)
	signatures, own := map[DID]string{}, map[performatives.Agent]performatives.Key{}
	for i, party := range a.Parties {
		signature := offered
		if i > 0 && is {
			signature = accept.AgreementSignature
		}
		if later, has := a.Signatures[party]; has {
			signature = later
		}
		key := a.signer(party, func(k performatives.Key) bool { return SignedBy(k, d.Hash, signature) })
		if d.Evidence.Keys[party] == "" {
			d.Evidence.know(party, key)
		}
		if SignedBy(key, d.Hash, signature) {
			signatures[d.Parties[i]] = signature
		}
		if key != d.Evidence.Keys[party] {
			own[party] = key
		}
	}
	if !is || len(a.Parties) != 2 || len(signatures) < len(a.Parties) {
		return
	}
	if d.Signatures = signatures; len(own) > 0 {
		d.Evidence.DIDKeys = own
	}
}

// know notes the key of a signer.
func (e *Evidence) know(a performatives.Agent, k performatives.Key) {
	known, is := e.Keys[a]
	switch {
	case k == "" || k == known || slices.Contains(e.Rotated[a], k):
	case !is:
		e.Keys[a] = k
	case e.Rotated == nil:
		e.Rotated = map[performatives.Agent][]performatives.Key{a: {k}}
	default:
		e.Rotated[a] = append(e.Rotated[a], k)
	}
}

// made is the entry by which the agreement came to be.
func (a Accepted) made() transcript.Entry {
	switch n := len(a.Confirmations); {
	case a.Close.Message != nil:
		return a.Close
	case n > 0:
		return a.Confirmations[n-1]
	default:
		return a.Acceptance
	}
}

// terms are those of the offer and of the commitment that carries it out. Where both have a
// term of one name it is the commitment's, which was agreed later.
func (a Accepted) terms() (performatives.Object, error) {
	offering, offers := a.Offer.Message.Body.(performatives.Offering)
	if offers && a.Commitment.Message == nil {
		return offering.Offer().Terms, nil
	}
	all, commitment := map[string]jsontext.Value{}, a.Commitment.Message
	if offers {
		if err := json.Unmarshal(offering.Offer().Terms, &all); err != nil {
			return nil, err
		}
	} else {
		commitment = a.Offer.Message
	}
	if _, commits := commitment.Body.(*performatives.CommitBody); !commits {
		return nil, errNoOffer
	}
	var body struct {
		Terms    map[string]jsontext.Value `json:"terms"` // obligations, and more
		Deadline jsontext.Value            `json:"deadline"`
		Escrow   jsontext.Value            `json:"escrow"`
	}
	if err := json.Unmarshal(commitment.RawBody, &body); err != nil {
		return nil, err
	}
	maps.Copy(all, body.Terms)
	for name, value := range map[string]jsontext.Value{"deadline": body.Deadline, "escrow": body.Escrow} {
		if value != nil {
			all[name] = value
		}
	}
	terms, err := canonical(all)
	return terms, err
}

// saltOf is the salt of an offer: the one that it has, or one that derives from what
// only the participants know.
func saltOf(m *performatives.Message) Salt {
	if b, binds := m.Body.(performatives.Binder); binds {
		if salt, given := ParseSalt(b.Binds().AgreementSalt); given {
			return salt
		}
	}
	return sha256.Sum256(slices.Concat([]byte("parley agreement salt\n"), []byte(m.Signature), m.SigningBytes()))
}

// Redact takes out all terms but those to keep, and what else would tell them: the
// entries, and the position in the public log if its leaf has terms that are taken out.
func (d Document) Redact(keep ...string) Document {
	terms, salts := map[string]jsontext.Value{}, map[string]string{}
	for _, name := range keep {
		if value, has := d.Terms[name]; has {
			terms[name], salts[name] = value, d.Salts[name]
		}
	}
	d.Terms, d.Salts = terms, salts
	if d.Log != nil {
		leaf, err := inclusion.ReadLeaf(d.Log.Leaf)
		for name := range leaf.Terms {
			if _, kept := terms[name]; !kept {
				d.Log = nil
			}
		}
		if err != nil {
			d.Log = nil
		}
	}
	if d.Evidence != nil {
		d.Evidence = &Evidence{Keys: d.Evidence.Keys, Rotated: d.Evidence.Rotated, DIDKeys: d.Evidence.DIDKeys, DIDs: d.Evidence.DIDs}
	}
	return d
}

// MarshalJSON writes the document in canonical form, in replies too.
func (d Document) MarshalJSON() ([]byte, error) {
	type members Document
	return canonical(members(d))
}

// Bytes are the document in canonical form (RFC 8785), the form in which it is kept.
func (d Document) Bytes() ([]byte, error) {
	data, err := canonical(d)
	return bytes.Clone(data), err
}
