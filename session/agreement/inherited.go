package agreement

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// An Inherited is what an agreement inherits of its parties: their DIDs, the most restrictive
// regulatory classification, and the obligations of those that are regulated where others
// are not (OAP RFC-0002, section 3.7). Its members are nil for none.
type Inherited struct {
	CCC, Obligations jsontext.Value
	DIDs             map[performatives.Agent]DID // of parties that have registered another than DIDOf
	OAP              bool                        // the agreement names its session by OAP's id
}

// A NegotiationID is a session's id as an agreement has it: with OAP's prefix, if the invitation
// of binding/1 asks for that.
type NegotiationID string

// Session is the session's own id.
func (n NegotiationID) Session() performatives.SessionID {
	return performatives.SessionID(strings.TrimPrefix(string(n), OAPNegotiation))
}

func (n NegotiationID) oap() bool { return strings.HasPrefix(string(n), OAPNegotiation) }

func (c Inherited) negotiation(id performatives.SessionID) NegotiationID {
	if c.OAP {
		return NegotiationID(OAPNegotiation + string(id))
	}
	return NegotiationID(id)
}

// OAPIDs is the value of the policy's member ids, in binding/1, by which agreements have OAP's ids.
const OAPIDs = "oap"

// oapIDs reports whether a session's agreements have OAP's ids.
func oapIDs(s *session.State) bool {
	var policy struct {
		IDs string `json:"ids"`
	}
	return s.Mode.Signed && s.Agreed != nil && len(s.Agreed.Policy) > 0 && json.Unmarshal(s.Agreed.Policy, &policy) == nil && policy.IDs == OAPIDs
}

// DIDOf is the DID of a party in the session.
func (c Inherited) DIDOf(a performatives.Agent) DID {
	if did, registered := c.DIDs[a]; registered {
		return did
	}
	return DIDOf(a)
}

// InheritedOf is that of a session.
func InheritedOf(s *session.State) (c Inherited) {
	c.OAP = oapIDs(s)
	for _, a := range s.Participants() {
		if did := s.DID(a); did != "" {
			if c.DIDs == nil {
				c.DIDs = map[performatives.Agent]DID{}
			}
			c.DIDs[a] = DID(did)
		}
	}
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
		obligations = append(obligations, obligation{c.DIDOf(a), *s.Regulation(a)})
	}
	c.CCC, _ = canonical(performatives.Regulation{Classification: classification}) // texts
	if len(obligations) > 0 {
		c.Obligations, _ = canonical(obligations) // texts
	}
	return c
}

// AskedOf is what the invitation asks the parties to publish of their agreements beyond digests; whoever
// accepts consents. It is nil if nothing is asked for, and of a privileged session.
func AskedOf(s *session.State) jsontext.Value {
	if s.Agreed == nil || performatives.Privileged(s.Classification()) {
		return nil
	}
	return askedIn(s.Agreed.Policy)
}

// PublishIn is what the parties of an agreement let a leaf of the public log show: nothing but
// the hash, which is of salted digests, of a privileged session, or if one has not consented.
func PublishIn(s *session.State, a session.Agreement) Publish {
	if performatives.Privileged(s.Classification()) || s.Policy.Format >= 4 && !a.Consented {
		return Publish{}
	}
	return PublishOf(s.Agreed.Policy)
}
