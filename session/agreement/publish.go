package agreement

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/session/agreement/inclusion"
)

// A Publish is what the parties let a leaf of the public log show beside the hash: policy.publish
// of the invitation. The zero value is nothing.
type Publish struct {
	All   bool
	Names []string // of terms
}

// ParsePublish reads "hash", "terms", or a list of terms.
func ParsePublish(value jsontext.Value) (p Publish, ok bool) {
	if value.Kind() == '[' {
		return p, json.Unmarshal(value, &p.Names) == nil
	}
	var word string
	if value.Kind() != '"' || json.Unmarshal(value, &word) != nil {
		return p, false
	}
	return Publish{All: word == "terms"}, word == "hash" || word == "terms"
}

// PublishOf is what a policy that was accepted says.
func PublishOf(policy jsontext.Value) Publish {
	p, _ := ParsePublish(askedIn(policy))
	return p
}

// askedIn is the publish of a policy, nil if it is digests only.
func askedIn(policy jsontext.Value) jsontext.Value {
	var given struct {
		Publish jsontext.Value `json:"publish"`
	}
	if len(policy) == 0 || json.Unmarshal(policy, &given) != nil {
		return nil
	}
	if p, ok := ParsePublish(given.Publish); !ok || !p.All && len(p.Names) == 0 {
		return nil
	}
	return given.Publish
}

// Leaf is what the public log says of the agreement. Terms that do not fit are left out.
func (d Document) Leaf(acceptedAt string, p Publish) (jsontext.Value, error) {
	leaf := inclusion.Leaf{Type: inclusion.Agreement, Hash: string(d.Hash), At: acceptedAt}
	bare, err := leaf.Bytes()
	if err != nil || !p.All && len(p.Names) == 0 {
		return bare, err
	}
	leaf.Terms = d.Terms
	if !p.All {
		leaf.Terms = d.Redact(p.Names...).Terms
	}
	if full, err := leaf.Bytes(); err != nil || len(full) <= inclusion.MaxLeaf {
		return full, err
	}
	return bare, nil
}
