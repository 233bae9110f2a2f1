package api

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

// A Card is what a principal says of itself. The fields under "registry" are
// the registry's and ignored in what a principal sends.
type Card struct {
	Agent               performatives.Agent `json:"agentId"`
	Name                string              `json:"name,omitzero"`
	Description         string              `json:"description,omitzero"`
	Organization        string              `json:"organization,omitzero"`
	Kind                string              `json:"kind,omitzero"` // system or personal (default); human for a human://
	Capabilities        []string            `json:"capabilities,omitzero"`
	Protocols           []string            `json:"protocols,omitzero"`
	Schemas             []string            `json:"schemas,omitzero"`
	Key                 performatives.Key   `json:"key,omitzero"`
	ConformanceLevel    jsontext.Value      `json:"conformanceLevel,omitzero"`
	MaxTransactionValue *float64            `json:"maxTransactionValue,omitzero"`
	Currency            string              `json:"currency,omitzero"`
	Availability        jsontext.Value      `json:"availability,omitzero"`
	Standby             performatives.Agent `json:"standby,omitzero"` // a system agent of the same organisation that may take turns left waiting
	CCC                 jsontext.Value      `json:"ccc,omitzero"`     // OAP's Confidentiality and Compliance Context; only its organisation reads it
	Skills              []discovery.Skill   `json:"skills,omitzero"`
	Pricing             jsontext.Value      `json:"pricing,omitzero"`     // {amount, currency, per}
	QueueDepth          jsontext.Value      `json:"queueDepth,omitzero"`  // how many tasks wait for it; null is unknown
	A2A                 bool                `json:"a2a,omitzero"`         // of a hosted agent: clients of A2A reach it at /a2a/<token>/
	MACP                bool                `json:"macp,omitzero"`        // of a hosted agent: it has accepted MACP's invitations in advance
	MACPSender          string              `json:"macp_sender,omitzero"` // its name in MACP, by default its URI

	DomainVerified bool     `json:"domainVerified,omitzero"` // the registry's: the domain of the URI vouches for the key
	Registry       Registry `json:"registry,omitzero"`

	Truncated bool `json:"truncated,omitzero"` // in a list: long values are cut; agent.get has them
}

// Registry is what the registry holds of a principal, and no card can claim.
type Registry struct {
	TrustScore   *float64              `json:"trustScore,omitzero"`  // 0–100
	DID          string                `json:"did,omitzero"`         // that an operator registered instead of that of the agent's host
	MayDecide    bool                  `json:"mayDecide,omitzero"`   // a human who decides escalations
	Auditor      bool                  `json:"auditor,omitzero"`     // a human who reads the organisation's sessions, and only reads
	Limits       []performatives.Limit `json:"limits,omitzero"`      // of a human who may decide: the ceilings; none is no ceiling
	Devices      []Device              `json:"devices,omitzero"`     // keys that a human's browsers sign with
	Away         *Away                 `json:"away,omitzero"`        // who stands in for a human, until it is over
	A2A          string                `json:"a2a,omitzero"`         // URL of the server of an agent elsewhere, which speaks A2A
	A2AUnsigned  bool                  `json:"a2aUnsigned,omitzero"` // its agent card need not be signed
	Domain       *DomainProof          `json:"domain,omitzero"`      // of the key that it names only
	RegisteredAt string                `json:"registeredAt,omitzero"`
	UpdatedAt    string                `json:"updatedAt,omitzero"`
}

// A DomainProof says that the domain of a principal's URI vouches for a key.
type DomainProof struct {
	Key performatives.Key `json:"key"`
	By  string            `json:"by"` // operator, dns or file
	At  string            `json:"at"`
}

// Who says that a domain vouches for a key.
const (
	ByOperator = "operator"
	ByDNS      = "dns"
	ByFile     = "file"
)

// VerifyDomain is the request of agent.verify; the reply is the card.
type VerifyDomain struct {
	Agent performatives.Agent `json:"agentId,omitzero"` // of a principal: its own
	By    string              `json:"by"`               // operator, dns or file
}

// Away says who stands in for a human, and for how long. It gives the stand-in no right.
type Away struct {
	To    performatives.Agent `json:"to"`
	From  time.Time           `json:"from"`
	Until time.Time           `json:"until"`
}

// At tells whether the human is away at a time.
func (a *Away) At(t time.Time) bool { return a != nil && !t.Before(a.From) && t.Before(a.Until) }

// SetAway is the request of human.away; the reply is the card. A human may omit their
// own agentId. Without to they are back.
type SetAway struct {
	Agent performatives.Agent `json:"agentId,omitzero"`
	To    performatives.Agent `json:"to,omitzero"`    // a colleague who may decide
	From  time.Time           `json:"from,omitzero"`  // by default now
	Until time.Time           `json:"until,omitzero"` // at most 366 days later
}

// RegisterAgent is the request of agent.register, whose reply is the card as registered.
type RegisterAgent struct {
	Card *Card `json:"card"`
}

// RotateKey is the request of agent.rotate; the reply is the card with the new
// key. A principal signs it with the key that it has and with the new one, an
// operator with none.
type RotateKey struct {
	Agent     performatives.Agent `json:"agentId,omitzero"` // of a principal: its own
	Key       performatives.Key   `json:"key"`              // the new one
	Timestamp string              `json:"timestamp,omitzero"`
	Signature string              `json:"signature,omitzero"` // over SigningBytes, by the key that it has
	Proof     string              `json:"proof,omitzero"`     // over the same, by the new one
}

// SigningBytes are the JCS bytes of {agentId, key, timestamp}.
func (r RotateKey) SigningBytes() ([]byte, error) {
	return canonical(struct {
		Agent     performatives.Agent `json:"agentId"`
		Key       performatives.Key   `json:"key"`
		Timestamp string              `json:"timestamp"`
	}{r.Agent, r.Key, r.Timestamp})
}

// An AgentRef is the request of agent.get and agent.rm; the reply is the card.
type AgentRef struct {
	Agent performatives.Agent `json:"agentId"`
}

// AskUserJWT is the request of agent.jwt. A principal asks about itself.
type AskUserJWT struct {
	Agent performatives.Agent `json:"agentId,omitzero"`
	Key   performatives.Key   `json:"key,omitzero"` // absent: the one it is registered with; else one that it will be
}

// UserJWT is the reply of agent.jwt: what a NATS credentials file (.creds) of the
// principal has beside the seed of the key. It lets nobody in by itself.
type UserJWT struct {
	Agent performatives.Agent `json:"agentId"`
	Key   performatives.Key   `json:"key"`
	JWT   string              `json:"jwt"`
}

// ListAgents is the request of agent.list; agents come by URI.
type ListAgents struct {
	Organization string  `json:"organization,omitzero"` // the URI's host
	Capability   string  `json:"capability,omitzero"`
	Kind         string  `json:"kind,omitzero"`
	MinTrust     float64 `json:"minTrust,omitzero"` // a trust score of at least this
	Limit        int     `json:"limit,omitzero"`
	Cursor       string  `json:"cursor,omitzero"`
}

// Agents is a page of agent.list.
type Agents struct {
	Agents []Card `json:"agents"`
	Next   string `json:"next,omitzero"`
}
