package main

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/invopop/jsonschema"
)

// An envelope is one act as its sender sends it (PROTOCOL.md §3). Unknown fields are kept, signed and
// hashed.
type envelope struct {
	Version      string       `json:"version" jsonschema:"enum=asp/0.1"`
	MessageID    string       `json:"messageId" jsonschema:"format=uuid,description=UUIDv7\\, made by the sender"`
	SessionID    string       `json:"sessionId" jsonschema:"format=uuid,description=UUIDv7\\, the same as in the subject"`
	Timestamp    string       `json:"timestamp" jsonschema:"format=date-time,description=Within 5 minutes of the broker's clock"`
	Sender       party        `json:"sender"`
	Recipient    *recipient   `json:"recipient,omitzero" jsonschema:"description=Who should act; absent means everybody"`
	Performative string       `json:"performative" jsonschema:"enum=PROPOSE,enum=ACCEPT,enum=REJECT,enum=COUNTER,enum=INFORM,enum=QUERY,enum=CLARIFY,enum=COMMIT,enum=DELEGATE,enum=ESCALATE,enum=WITHDRAW,enum=OBSERVE,enum=CLOSE"`
	Content      content      `json:"content"`
	Constraints  *constraints `json:"constraints,omitzero"`
	Sequence     *uint64      `json:"sequenceNumber,omitzero" jsonschema:"description=Position in the transcript from 0; with previousHash or not at all"`
	Broker       string       `json:"broker,omitzero" jsonschema:"description=The public key of the broker that the envelope is for"`
	Integrity    *integrity   `json:"integrity,omitzero"`
}

type party struct {
	AgentID string `json:"agentId" jsonschema:"pattern=^(agent|human|broker)://"`
	OrgID   string `json:"orgId,omitzero" jsonschema:"description=Kept\\, and decides nothing"`
}

// A recipient is a principal's URI, alone or as a party.
type recipient struct{}

// JSONSchema says so.
func (recipient) JSONSchema() *jsonschema.Schema {
	uri := &jsonschema.Schema{Type: "string", Pattern: "^(agent|human|broker)://"}
	object := &jsonschema.Schema{Type: "object", Required: []string{"agentId"}, Properties: jsonschema.NewProperties()}
	object.Properties.Set("agentId", uri)
	object.Properties.Set("orgId", &jsonschema.Schema{Type: "string"})
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{uri, object}}
}

type content struct {
	Body     map[string]any   `json:"body" jsonschema:"description=By the schema of its act"`
	MimeType string           `json:"mimeType,omitzero"`
	Context  []jsontext.Value `json:"context,omitzero"`
}

type constraints struct {
	MaxResponseTimeMs    *float64 `json:"maxResponseTimeMs,omitzero" jsonschema:"minimum=0"`
	RequiredTrustScore   *float64 `json:"requiredTrustScore,omitzero" jsonschema:"minimum=0,maximum=100"`
	AllowedPerformatives []string `json:"allowedPerformatives,omitzero"`
}

type integrity struct {
	Signature    string `json:"signature,omitzero" jsonschema:"pattern=^ed25519:[0-9a-f]{128}$,description=Over the RFC 8785 form of the envelope without this field; required without --dev"`
	PreviousHash string `json:"previousHash,omitzero" jsonschema:"pattern=^sha256:[0-9a-f]{64}$"`
}

// An entry is an envelope as the broker accepted it, stored it in the transcript, and delivers it.
type entry struct {
	envelope
	Sequence  uint64 `json:"sequenceNumber" jsonschema:"description=Position in the transcript\\, from 0"`
	Integrity sealed `json:"integrity"`
}

type sealed struct {
	Signature    string   `json:"signature,omitzero" jsonschema:"pattern=^ed25519:[0-9a-f]{128}$,description=The sender's"`
	PreviousHash string   `json:"previousHash" jsonschema:"pattern=^sha256:[0-9a-f]{64}$,description=Hash of the entry before; of the first 64 zeros"`
	LinkedBy     string   `json:"linkedBy" jsonschema:"enum=sender,enum=broker,description=Who provided the position"`
	OnBehalfOf   string   `json:"onBehalfOf,omitzero" jsonschema:"description=The principal that a delegate acts for"`
	Joined       []member `json:"joined,omitzero" jsonschema:"description=Who joins by this entry"`
	Hash         string   `json:"hash" jsonschema:"pattern=^sha256:[0-9a-f]{64}$"`
	Receipt      receipt  `json:"receipt"`
}

type member struct {
	AgentID     string   `json:"agentId"`
	Key         string   `json:"key,omitzero" jsonschema:"description=Public nkey that verifies its entries"`
	Custody     string   `json:"custody,omitzero" jsonschema:"enum=hosted,description=hosted: the installation holds the private half of key; absent where the principal holds it"`
	Kind        string   `json:"kind" jsonschema:"enum=system,enum=personal,enum=human,enum=broker"`
	Authority   string   `json:"authority" jsonschema:"enum=principal,enum=full,enum=limited,enum=advisory,enum=standby,enum=decide,enum=broker,enum=arbiter"`
	Conformance string   `json:"conformanceLevel,omitzero" jsonschema:"enum=minimal,description=Of an agent that knows INFORM and QUERY and CLOSE only"`
	MaxValue    *float64 `json:"maxTransactionValue,omitzero" jsonschema:"minimum=0,description=The most that the agent may agree to\\, by its card"`
	Currency    string   `json:"currency,omitzero" jsonschema:"description=Of maxTransactionValue"`
	Salt        string   `json:"salt,omitzero" jsonschema:"pattern=^[0-9a-f]{64}$,description=Of a human: opens its name in the route that asks it"`
	Standby     string   `json:"standby,omitzero" jsonschema:"description=Of a principal: the agent that may take turns which it leaves waiting"`
}

type receipt struct {
	AcceptedAt string `json:"acceptedAt" jsonschema:"format=date-time"`
	State      string `json:"state" jsonschema:"description=The session's state after the entry"`
	Broker     string `json:"broker" jsonschema:"description=Public nkey"`
	Signature  string `json:"signature" jsonschema:"pattern=^ed25519:[0-9a-f]{128}$,description=The broker's\\, over the RFC 8785 form of {acceptedAt\\, hash\\, state}"`
}
