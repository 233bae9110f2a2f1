package agreement

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Confidentiality is what an agreement inherits of its parties: the most restrictive
// regulatory classification, and the obligations of those that are regulated where others
// are not (OAP RFC-0002, section 3.7). Its members are nil for none.
type Confidentiality struct{ CCC, Obligations jsontext.Value }

// ConfidentialityOf is that of a session.
func ConfidentialityOf(s *session.State) (c Confidentiality) {
	classification := s.Classification()
	if classification == "" {
		return c
	}
	type obligation struct {
		Party DID `json:"party"`
		performatives.Regulation
	}
	var obligations []obligation
	for _, a := range s.Obligated() {
		obligations = append(obligations, obligation{DIDOf(a), *s.Regulation(a)})
	}
	c.CCC, _ = canonical(performatives.Regulation{Classification: classification}) //nolint:errcheck // texts
	if len(obligations) > 0 {
		c.Obligations, _ = canonical(obligations) //nolint:errcheck // texts
	}
	return c
}

// PublishIn is what the parties of a session let a leaf of the public log show: of a
// privileged one nothing but the hash, which is of salted digests.
func PublishIn(s *session.State) Publish {
	if performatives.Privileged(s.Classification()) {
		return Publish{}
	}
	return PublishOf(s.Agreed.Policy)
}
