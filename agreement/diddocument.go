package agreement

import (
	"slices"

	"github.com/mr-tron/base58"

	"github.com/parley-asp/parley/performatives"
)

// A DIDDocument says which keys are a party's (W3C DID Core; keys as Multikey).
type DIDDocument struct {
	Context        []string `json:"@context"`
	ID             DID      `json:"id"`
	AlsoKnownAs    []DID    `json:"alsoKnownAs,omitzero"` // did:key of its own key
	Keys           []DIDKey `json:"verificationMethod"`
	Authentication []string `json:"authentication"`
	Assertion      []string `json:"assertionMethod"`
}

// A DIDKey is one key of a document.
type DIDKey struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Controller DID    `json:"controller"`
	Multibase  string `json:"publicKeyMultibase"`
}

// DIDDocumentOf is the document of a principal with a key of its own, one that the
// installation holds for it, or both; "" for none.
func DIDDocumentOf(a performatives.Agent, own, hosted performatives.Key) DIDDocument {
	did := DIDOf(a)
	d := DIDDocument{Context: []string{"https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"}, ID: did, Keys: []DIDKey{}}
	ids := []string{}
	for _, k := range []struct {
		name string
		key  performatives.Key
	}{{"key", own}, {"hosted", hosted}} {
		if !k.key.Valid() {
			continue
		}
		id := string(did) + "#" + k.name
		d.Keys, ids = append(d.Keys, DIDKey{ID: id, Type: "Multikey", Controller: did, Multibase: multibase(k.key)}), append(ids, id)
	}
	if own.Valid() {
		d.AlsoKnownAs = []DID{DIDKeyOf(own)}
	}
	d.Authentication, d.Assertion = ids, ids
	return d
}

// DIDKeyOf is the did:key of a key.
func DIDKeyOf(k performatives.Key) DID { return DID("did:key:" + multibase(k)) }

// ed25519 is the multicodec of an Ed25519 public key.
var ed25519 = []byte{0xed, 0x01}

// multibase is a key in base58btc.
func multibase(k performatives.Key) string {
	return "z" + base58.Encode(slices.Concat(ed25519, k.Public()))
}
