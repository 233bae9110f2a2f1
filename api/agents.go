package api

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

// StandbyOf is the system agent of an organisation that takes its agents' parked turns where the
// installation has one for each (parley serve --standby).
func StandbyOf(o performatives.Organisation) performatives.Agent {
	return performatives.Agent("agent://" + string(o) + "/standby")
}

// A Card is what a principal says of itself. The fields under "registry" are the
// registry's: what a principal sends of them is what they are, or refused.
type Card struct {
	Agent               performatives.Agent `json:"agentId"`
	Name                string              `json:"name,omitzero"`
	Description         string              `json:"description,omitzero"`
	Organization        string              `json:"organization,omitzero"`
	Kind                string              `json:"kind,omitzero"` // system or personal (default); human for a human://
	Capabilities        []string            `json:"capabilities,omitzero"`
	Protocols           []string            `json:"protocols,omitzero"`
	Schemas             []string            `json:"schemas,omitzero"`
	Key                 performatives.Key   `json:"key,omitzero"`       // signs, and logs in nowhere
	LoginKeys           []performatives.Key `json:"loginKeys,omitzero"` // log in to NATS, and sign nothing
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
	Extra               Extra               `json:"extra,omitzero"`       // members that no version of the card defines, by name

	DomainVerified bool     `json:"domainVerified,omitzero"` // the registry's: the domain of the URI vouches for the key
	Registry       Registry `json:"registry,omitzero"`

	Truncated bool `json:"truncated,omitzero"` // in a list: long values are cut; agent.get has them
}

// Extra has the members of a card that parley does not know. Nothing is decided by them.
type Extra map[string]jsontext.Value

// UnmarshalJSONFrom reads a card. Members that it does not know become extra, those of
// registry as well, under "registry".
func (c *Card) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type plain Card
	read := struct {
		plain
		Registry struct {
			Registry
			Unknown Extra `json:",embed"`
		} `json:"registry"`
		Unknown Extra `json:",embed"`
	}{}
	if err := json.UnmarshalDecode(d, &read); err != nil {
		return err
	}
	*c = Card(read.plain)
	c.Registry = read.Registry.Registry
	if len(read.Registry.Unknown) > 0 {
		unknown, err := json.Marshal(read.Registry.Unknown, json.Deterministic(true))
		if err != nil {
			return err
		}
		read.Unknown = with(read.Unknown, "registry", unknown)
	}
	for name, value := range read.Unknown {
		c.Extra = with(c.Extra, name, value)
	}
	return nil
}

func with(e Extra, name string, value jsontext.Value) Extra {
	if e == nil {
		e = Extra{}
	}
	e[name] = value
	return e
}

// Registry is what the registry holds of a principal, and no card can claim.
type Registry struct {
	TrustScore   *float64              `json:"trustScore,omitzero"`  // 0–100
	DID          string                `json:"did,omitzero"`         // that an operator registered instead of that of the agent's host
	MayDecide    bool                  `json:"mayDecide,omitzero"`   // a human who decides escalations
	Auditor      bool                  `json:"auditor,omitzero"`     // a human who reads the organisation's sessions, and only reads
	Limits       []performatives.Limit `json:"limits,omitzero"`      // of a human who may decide: the ceilings; none is no ceiling
	FormerKeys   []performatives.Key   `json:"formerKeys,omitzero"`  // that it signed with: nobody may log in with one
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

// At reports whether the human is away at a time.
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

// InOrder says that the order of members counts: reasons name a skill's capabilities in the card's.
func (RegisterAgent) InOrder() {}

// RotateKey is the request of agent.rotate; the reply is the card with the new
// keys. A principal signs it with the key that it has and with the new one, an
// operator with none.
type RotateKey struct {
	Agent     performatives.Agent `json:"agentId,omitzero"`   // of a principal: its own
	Key       performatives.Key   `json:"key"`                // the new one that signs
	LoginKeys []performatives.Key `json:"loginKeys,omitzero"` // the new ones that log in; absent: those that it has
	Timestamp string              `json:"timestamp,omitzero"`
	Signature string              `json:"signature,omitzero"` // over SigningBytes, by the key that it has
	Proof     string              `json:"proof,omitzero"`     // over the same, by the new one
}

// SigningBytes are the JCS bytes of {agentId, key, timestamp}, with loginKeys where there are any.
func (r RotateKey) SigningBytes() ([]byte, error) {
	return canonical(struct {
		Agent     performatives.Agent `json:"agentId"`
		Key       performatives.Key   `json:"key"`
		LoginKeys []performatives.Key `json:"loginKeys,omitzero"`
		Timestamp string              `json:"timestamp"`
	}{r.Agent, r.Key, r.LoginKeys, r.Timestamp})
}

// An AgentRef is the request of agent.get and agent.rm; the reply is the card.
type AgentRef struct {
	Agent performatives.Agent `json:"agentId"`
}

// AskUserJWT is the request of agent.jwt. A principal asks about itself.
type AskUserJWT struct {
	Agent performatives.Agent `json:"agentId,omitzero"`
	Key   performatives.Key   `json:"key,omitzero"` // absent: the first login key of its card; else one that will be there
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

// The status of an agent's availability.
const (
	Online  = "online"
	Offline = "offline"
)

// Availability is what a card says of when its agent is there, with what the registry adds:
// its status, and lastSeen where it is offline and was seen before. What is no object is
// under "stated".
func Availability(own jsontext.Value, online bool, last time.Time) jsontext.Value {
	said := ownMembers(own)
	said["status"] = quoted(Offline)
	switch {
	case online:
		said["status"] = quoted(Online)
	case !last.IsZero():
		said["lastSeen"] = quoted(last.UTC().Format(time.RFC3339))
	}
	return objectOf(said)
}

// OwnAvailability is an availability without what only the registry says.
func OwnAvailability(said jsontext.Value) jsontext.Value {
	if said.Kind() != '{' {
		return said
	}
	return objectOf(ownMembers(said))
}

// Available reads whether an agent is online, and when it was last seen, from a card as the
// registry shows it.
func (c Card) Available() (online bool, lastSeen time.Time) {
	var is struct {
		Status   string    `json:"status"`
		LastSeen time.Time `json:"lastSeen"`
	}
	if json.Unmarshal(c.Availability, &is) != nil {
		return false, time.Time{}
	}
	return is.Status == Online, is.LastSeen
}

func ownMembers(availability jsontext.Value) map[string]jsontext.Value {
	said := map[string]jsontext.Value{}
	switch {
	case availability.Kind() == '{' && json.Unmarshal(availability, &said) != nil:
		return map[string]jsontext.Value{}
	case availability.Kind() != '{' && len(availability) > 0:
		said["stated"] = availability
	}
	delete(said, "status")
	delete(said, "lastSeen")
	return said
}

func objectOf(members map[string]jsontext.Value) jsontext.Value {
	data, err := json.Marshal(members, json.Deterministic(true))
	if err != nil || len(members) == 0 {
		return nil
	}
	return data
}

func quoted(s string) jsontext.Value { return jsontext.Value(strconv.Quote(s)) }

// AddAgent is the request of agent.add; the reply is the card as registered.
type AddAgent struct {
	Card   *Card `json:"card"`
	Hosted bool  `json:"hosted,omitzero"` // the installation makes and holds a signing key for it
}

// InOrder says that the order of members counts.
func (AddAgent) InOrder() {}

// AddToken is the request of token.add; the reply is the token with its secret.
type AddToken struct {
	Agent    performatives.Agent `json:"agentId"`
	Name     string              `json:"name,omitzero"`
	Lifetime int64               `json:"lifetimeMs,omitzero"`  // 0: until it is removed
	ReadOnly bool                `json:"readOnly,omitzero"`    // it reads and cannot act
	Sender   string              `json:"macp_sender,omitzero"` // what MACP calls who holds it, by default as the card says
}

// A Token lets a program act for one principal over every protocol that is not NATS. Its
// id names the worker that holds it.
type Token struct {
	ID       string              `json:"id"`
	Agent    performatives.Agent `json:"agentId"`
	Name     string              `json:"name,omitzero"`
	ReadOnly bool                `json:"readOnly,omitzero"`
	Feed     bool                `json:"feed,omitzero"` // it reads the feed of what is due, and nothing else
	Sender   string              `json:"macp_sender,omitzero"`
	Created  string              `json:"createdAt"`
	Expires  string              `json:"expiresAt,omitzero"`
	LastUsed string              `json:"lastUsedAt,omitzero"` // to the minute
	Token    string              `json:"token,omitzero"`      // parley_<id>_<secret>, in the reply of token.add only
}

// ListTokens is the request of token.list; tokens come by id.
type ListTokens struct {
	Agent  performatives.Agent `json:"agentId,omitzero"`
	Limit  int                 `json:"limit,omitzero"`
	Cursor string              `json:"cursor,omitzero"`
}

// Tokens is a page of token.list.
type Tokens struct {
	Tokens []Token `json:"tokens"`
	Next   string  `json:"next,omitzero"`
}

// A TokenRef is the request of token.rm; the reply is the token that was removed.
type TokenRef struct {
	ID string `json:"id"`
}

// ProveToken is the request by which a principal that signs for itself gets a token that
// lives an hour (POST /v1/asp/token).
type ProveToken struct {
	Agent     performatives.Agent `json:"agentId"`
	Timestamp string              `json:"timestamp"`
	Audience  performatives.Key   `json:"audience"`  // the broker's public key
	Signature string              `json:"signature"` // over SigningBytes, by the principal's key
}

// SigningBytes are the JCS bytes of {agentId, audience, timestamp}.
func (p ProveToken) SigningBytes() ([]byte, error) {
	return canonical(struct {
		Agent     performatives.Agent `json:"agentId"`
		Audience  performatives.Key   `json:"audience"`
		Timestamp string              `json:"timestamp"`
	}{p.Agent, p.Audience, p.Timestamp})
}

// Enrolled is what a human is told of a device that signs for them from now on,
// on asp.people.<org>.<token>.
type Enrolled struct {
	Kind   string              `json:"kind"` // enrolled
	At     time.Time           `json:"at"`
	Human  performatives.Agent `json:"human"`
	Device Device              `json:"device"`
}

// EnrolHuman is the request of human.enrol.
type EnrolHuman struct {
	Agent performatives.Agent `json:"agentId"`
}

// Enrolment answers human.enrol: a code, good once, by which the human's browser
// has a key of its own registered.
type Enrolment struct {
	Agent   performatives.Agent `json:"agentId"`
	Code    string              `json:"code"`
	Expires time.Time           `json:"expiresAt"`
}

// DeviceRef is the request of human.unenrol; the reply is the card. A human may omit
// their own agentId.
type DeviceRef struct {
	Agent performatives.Agent `json:"agentId,omitzero"`
	Key   performatives.Key   `json:"key"`
}

// A Device is a key that a human enrolled, such as a browser's, or that the installation
// holds for an agent. It signs like the principal's own; it does not log in to NATS.
type Device struct {
	Key      performatives.Key `json:"key"`
	Name     string            `json:"name,omitzero"`
	Enrolled string            `json:"enrolledAt,omitzero"`
	Custody  string            `json:"custody,omitzero"` // hosted: the installation holds it
}
