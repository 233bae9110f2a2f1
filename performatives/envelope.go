package performatives

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Version is the protocol version that an envelope must name.
const Version = "asp/0.1"

// A Message is one envelope as its sender made it (PROTOCOL.md §3).
type Message struct {
	Version      string
	ID           MessageID
	Session      SessionID
	Timestamp    time.Time
	Sender       Agent
	Recipient    Agent // "" is everybody
	Performative Performative
	ActName      string // as sent, also where it is no performative
	RawBody      jsontext.Value
	Body         Body // set by DecodeBody
	Constraints  Constraints
	Link         *Link  // nil where the broker is to link it
	Signature    string // "" in an unsigned envelope

	envelope  document // canonical, without integrity
	integrity document // canonical, without signature
	signing   []byte
}

// Constraints bind the addressee of a message.
type Constraints struct {
	MaxResponseTimeMs    *float64 `json:"maxResponseTimeMs,omitzero"`    // advisory: the broker records it
	RequiredTrustScore   *float64 `json:"requiredTrustScore,omitzero"`   // 0–100, of whoever answers
	AllowedPerformatives []string `json:"allowedPerformatives,omitzero"` // the next act that answers this message
}

// A Link is a sender's own place for its message in the chain.
type Link struct {
	Sequence     uint64
	PreviousHash Hash
}

// A Hash is "sha256:" and 64 lower-case hex digits.
type Hash string

// NoHash is the previousHash of a session's first entry.
const NoHash = Hash("sha256:" + "0000000000000000000000000000000000000000000000000000000000000000")

// HashOf is the SHA-256 of the bytes.
func HashOf(data []byte) Hash {
	sum := sha256.Sum256(data)
	return Hash("sha256:" + hex.EncodeToString(sum[:]))
}

func (h Hash) valid() bool {
	digits, ok := strings.CutPrefix(string(h), "sha256:")
	return ok && len(digits) == 64 && isLowerHex(digits)
}

func isLowerHex(s string) bool {
	for _, c := range []byte(s) {
		if unhex(c) < 0 {
			return false
		}
	}
	return true
}

// wireEnvelope is the envelope's JSON shape; what is absent stays zero.
type wireEnvelope struct {
	Version        *string        `json:"version"`
	MessageID      *string        `json:"messageId"`
	SessionID      *string        `json:"sessionId"`
	SequenceNumber jsontext.Value `json:"sequenceNumber"`
	Timestamp      *string        `json:"timestamp"`
	Sender         *struct {
		AgentID *string `json:"agentId"`
		OrgID   *string `json:"orgId"`
	} `json:"sender"`
	Recipient    jsontext.Value `json:"recipient"`
	Performative *string        `json:"performative"`
	Content      *struct {
		MimeType *string        `json:"mimeType"`
		Body     jsontext.Value `json:"body"`
		Context  jsontext.Value `json:"context"`
	} `json:"content"`
	Constraints *Constraints   `json:"constraints"`
	Integrity   jsontext.Value `json:"integrity"`
}

type wireIntegrity struct {
	Signature    *string `json:"signature"`
	PreviousHash *string `json:"previousHash"`
}

// brokersFields are those of integrity that only a broker writes.
var brokersFields = []string{"hash", "receipt", "linkedBy", "onBehalfOf", "joined"}

// Read reads an envelope from a sender. The error is ErrTooLarge or a
// *Malformed. Version, performative, signature, time and body are not judged
// here: the broker's order of checks puts the sender before them.
func Read(data []byte) (*Message, error) {
	canonical, err := Canonical(data)
	if err != nil {
		return nil, err
	}
	return readCanonical(canonical)
}

func readCanonical(canonical jsontext.Value) (*Message, error) {
	if canonical.Kind() != '{' {
		return nil, malformed("", "want a JSON object")
	}
	var w wireEnvelope
	if err := unmarshal(canonical, &w, ""); err != nil {
		return nil, err
	}
	m, err := w.message()
	if err != nil {
		return nil, err
	}
	doc, err := split(canonical)
	if err != nil {
		return nil, malformed("", "not I-JSON")
	}
	m.envelope = doc.without("integrity")
	return m, m.readIntegrity(w)
}

func (w *wireEnvelope) message() (*Message, error) {
	missing := func(path string) error { return malformed(path, "is missing") }
	switch {
	case w.Version == nil:
		return nil, missing("/version")
	case w.MessageID == nil:
		return nil, missing("/messageId")
	case w.SessionID == nil:
		return nil, missing("/sessionId")
	case w.Timestamp == nil:
		return nil, missing("/timestamp")
	case w.Sender == nil || w.Sender.AgentID == nil:
		return nil, missing("/sender/agentId")
	case w.Performative == nil:
		return nil, missing("/performative")
	case w.Content == nil || w.Content.Body == nil:
		return nil, missing("/content/body")
	case w.Content.Body.Kind() != '{':
		return nil, malformed("/content/body", "want an object")
	case w.Content.Context != nil && w.Content.Context.Kind() != '[':
		return nil, malformed("/content/context", "want a list")
	}
	m := &Message{
		Version: *w.Version, ActName: *w.Performative, Performative: Parse(*w.Performative),
		RawBody: w.Content.Body,
	}
	var err error
	if m.ID, err = ParseMessageID(*w.MessageID); err != nil {
		return nil, malformed("/messageId", "%s", err)
	}
	if m.Session, err = ParseSessionID(*w.SessionID); err != nil {
		return nil, malformed("/sessionId", "%s", err)
	}
	if m.Timestamp, err = parseTime(*w.Timestamp); err != nil {
		return nil, malformed("/timestamp", "want an RFC 3339 time, such as 2026-03-07T14:30:00.000Z")
	}
	if m.Sender, err = parseSender(*w.Sender.AgentID); err != nil {
		return nil, malformed("/sender/agentId", "%s", err)
	}
	if m.Recipient, err = recipient(w.Recipient); err != nil {
		return nil, err
	}
	if w.Constraints != nil {
		if m.Constraints, err = w.Constraints.valid(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// parseSender also takes a broker, whose entries Read meets in transcripts; a
// principal's subject never matches one.
func parseSender(uri string) (Agent, error) {
	if a := Agent(uri); a.IsBroker() && Key(strings.TrimPrefix(uri, brokerScheme)).Valid() {
		return a, nil
	}
	return ParseAgent(uri)
}

func parseTime(s string) (time.Time, error) { return time.Parse(time.RFC3339Nano, s) }

// recipient is a URI, or an object that names one.
func recipient(v jsontext.Value) (Agent, error) {
	path, uri := "/recipient", ""
	switch v.Kind() {
	case 0, 'n':
		return "", nil
	case '"':
		if err := unmarshal(v, &uri, path); err != nil {
			return "", err
		}
	case '{':
		var to struct {
			AgentID string `json:"agentId"`
			OrgID   string `json:"orgId"`
		}
		if err := unmarshal(v, &to, path); err != nil {
			return "", err
		}
		path, uri = "/recipient/agentId", to.AgentID
	default:
		return "", malformed(path, "want a principal's URI")
	}
	to, err := ParseAgent(uri)
	if err != nil {
		return "", malformed(path, "%s", err)
	}
	return to, nil
}

func (c Constraints) valid() (Constraints, error) {
	if ms := c.MaxResponseTimeMs; ms != nil && *ms < 0 {
		return c, malformed("/constraints/maxResponseTimeMs", "want at least 0 ms")
	}
	if t := c.RequiredTrustScore; t != nil && (*t < 0 || *t > 100) {
		return c, malformed("/constraints/requiredTrustScore", "want 0 to 100")
	}
	for _, name := range c.AllowedPerformatives {
		if Parse(name) == Unknown {
			return c, malformed("/constraints/allowedPerformatives", "%q is none of the thirteen performatives", name)
		}
	}
	return c, nil
}

func (m *Message) readIntegrity(w wireEnvelope) error {
	m.integrity = document{}
	if w.Integrity != nil {
		if w.Integrity.Kind() != '{' {
			return malformed("/integrity", "want an object")
		}
		doc, err := split(w.Integrity)
		if err != nil {
			return malformed("/integrity", "not I-JSON")
		}
		for _, name := range brokersFields {
			if doc.get(name) != nil {
				return malformed("/integrity/"+name, "is the broker's to write")
			}
		}
		m.integrity = doc.without("signature")
	}
	var in wireIntegrity
	if w.Integrity != nil {
		if err := unmarshal(w.Integrity, &in, "/integrity"); err != nil {
			return err
		}
	}
	if in.Signature != nil {
		m.Signature = *in.Signature
	}
	return m.readLink(w.SequenceNumber, in.PreviousHash)
}

// readLink takes sequenceNumber and previousHash as the pair that they are.
func (m *Message) readLink(sequence jsontext.Value, previous *string) error {
	switch {
	case sequence == nil && previous == nil:
		return nil
	case sequence == nil:
		return malformed("/sequenceNumber", "is missing; it comes with integrity.previousHash or not at all")
	case previous == nil:
		return malformed("/integrity/previousHash", "is missing; it comes with sequenceNumber or not at all")
	case !Hash(*previous).valid():
		return malformed("/integrity/previousHash", "want sha256: and 64 lower-case hex digits")
	}
	link := Link{PreviousHash: Hash(*previous)}
	if sequence.Kind() != '0' || json.Unmarshal(sequence, &link.Sequence) != nil {
		return malformed("/sequenceNumber", "want a whole number from 0")
	}
	m.Link = &link
	return nil
}

// unmarshal reads typed values and says where a type is wrong.
func unmarshal(v jsontext.Value, into any, at string) error {
	err := json.Unmarshal(v, into)
	if err == nil {
		return nil
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		want := "another type"
		if semantic.GoType != nil {
			want = plainType(semantic.GoType.Kind().String())
		}
		return malformed(at+string(semantic.JSONPointer), "want %s", want)
	}
	return malformed(at, "ill-typed")
}

func plainType(kind string) string {
	switch kind {
	case "ptr", "string":
		return "a string"
	case "struct":
		return "an object"
	case "slice":
		return "a list"
	default:
		return "a number"
	}
}

// DecodeBody reads the body into its type. Validate it against its schema
// first: that words the faults better.
func (m *Message) DecodeBody() error {
	body := NewBody(m.Performative)
	if body == nil {
		return malformed("/performative", "%q is none of the thirteen performatives", m.ActName)
	}
	if err := unmarshal(m.RawBody, body, "/content/body"); err != nil {
		return err
	}
	m.Body = body
	return nil
}

// SigningBytes are what the sender signs: the canonical envelope as the sender
// made it without integrity.signature; integrity itself stays.
func (m *Message) SigningBytes() []byte {
	if m.signing == nil {
		m.signing = m.envelope.with("integrity", m.integrity.bytes()).bytes()
	}
	return m.signing
}

// Digest tells whether two messages are the same one, byte for byte once
// canonical.
func (m *Message) Digest() [32]byte { return sha256.Sum256(m.SigningBytes()) }

// Equal tells whether two canonical values are the same.
func Equal(a, b jsontext.Value) bool { return bytes.Equal(a, b) }
