package agreement

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mr-tron/base58"
	"github.com/nats-io/nkeys"

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
func DIDKeyOf(k performatives.Key) DID { return DID(didKey + multibase(k)) }

const didKey = "did:key:"

// KeyOf is the key of a did:key; "" of anything else.
func KeyOf(d DID) performatives.Key {
	encoded, is := strings.CutPrefix(string(d), didKey)
	if !is {
		return ""
	}
	return keyOf(encoded)
}

// keyOf is the key that multibase wrote; "" of anything else.
func keyOf(encoded string) performatives.Key {
	digits, _ := strings.CutPrefix(encoded, "z")
	raw, err := base58.Decode(digits)
	if err != nil || len(raw) < len(ed25519) {
		return ""
	}
	public, err := nkeys.Encode(nkeys.PrefixByteUser, raw[len(ed25519):])
	if k := performatives.Key(public); err == nil && k.Valid() && multibase(k) == encoded {
		return k
	}
	return ""
}

// ReadDIDDocument are the keys by which the subject of a DID document makes assertions.
func ReadDIDDocument(data []byte, did DID) (keys []performatives.Key, err error) {
	var d struct {
		ID        DID              `json:"id"`
		Keys      []DIDKey         `json:"verificationMethod"`
		Assertion []jsontext.Value `json:"assertionMethod"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	if d.ID != did {
		return nil, fmt.Errorf("the document is of %.200q", d.ID)
	}
	asserts := map[string]bool{}
	for _, raw := range d.Assertion {
		var id string
		var key DIDKey
		switch {
		case json.Unmarshal(raw, &id) == nil:
			asserts[id] = true
		case json.Unmarshal(raw, &key) == nil:
			asserts[key.ID] = true
			d.Keys = append(d.Keys, key)
		}
	}
	for _, k := range d.Keys {
		if key := keyOf(k.Multibase); key != "" && (asserts[k.ID] || asserts[strings.TrimPrefix(k.ID, string(did))]) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// DocumentURL is where the document of a did:web is; "" of anything else.
func DocumentURL(d DID) string {
	rest, is := strings.CutPrefix(string(d), method)
	host, path, _ := strings.Cut(rest, ":")
	host, err := url.PathUnescape(host)
	if !is || err != nil || host == "" || strings.ContainsAny(host, "/?#@") || strings.ContainsAny(path, "/?#@") {
		return ""
	}
	if path == "" {
		path = ".well-known"
	}
	return "https://" + strings.ToLower(host) + "/" + strings.ReplaceAll(path, ":", "/") + "/did.json"
}

// ed25519 is the multicodec of an Ed25519 public key.
var ed25519 = []byte{0xed, 0x01}

// multibase is a key in base58btc.
func multibase(k performatives.Key) string {
	return "z" + base58.Encode(slices.Concat(ed25519, k.Public()))
}
