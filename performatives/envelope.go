package performatives

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
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
	Context      jsontext.Value // a list of what rides beside the body; nil for none
	Body         Body           // set by DecodeBody
	Constraints  Constraints
	Link         *Link       // nil where the broker is to link it
	Broker       Key         // the one that it is for, if its sender says so
	Signature    string      // "" in an unsigned envelope
	SignedBy     Key         // the key by which VerifySignature found it good
	Parts        SealedParts // that were sent beside it; Open checks them

	openBody jsontext.Value // nil where nothing is opened

	envelope  document // canonical, without integrity
	integrity document // canonical, with the signature if there is one
	signed    []byte   // what the signature is of
}

// Constraints bind the addressee of a message.
type Constraints struct {
	MaxResponseTimeMs    *float64 `json:"maxResponseTimeMs,omitzero"`    // shown and told as a deadline, which ends nothing
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
	text := append(make([]byte, 0, 71), "sha256:"...)
	return Hash(hex.AppendEncode(text, sum[:]))
}

// Valid reports whether it is a hash as HashOf makes it.
func (h Hash) Valid() bool {
	digits, ok := strings.CutPrefix(string(h), "sha256:")
	return ok && len(digits) == 64 && isLowerHex(digits)
}

func isLowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; c-'0' > 9 && c-'a' > 5 { // in bytes, which wrap
			return false
		}
	}
	return true
}

// brokersFields are those of integrity that only a broker writes.
var brokersFields = []string{"hash", "receipt", "linkedBy", "onBehalfOf", "joined"}

// Read reads an envelope from a sender, or one with the parts that open it beside it. The error is ErrTooLarge or a
// *Malformed. Version, performative, signature, time and body are not judged
// here: the broker's order of checks puts the sender before them. The message
// shares the data's memory: do not change it afterwards.
func Read(data []byte) (*Message, error) {
	canonical, err := Canonical(data)
	if err != nil {
		return nil, err
	}
	envelope, parts, err := readSubmission(canonical)
	if err != nil {
		return nil, err
	}
	m, err := readCanonical(envelope)
	if err != nil {
		return nil, err
	}
	m.Parts = parts
	return m, m.envelope.published()
}

// envelopesMembers are those that the published schema of an envelope has, and theirs.
var envelopesMembers = map[string][]string{
	"version": nil, "messageId": nil, "sessionId": nil, "timestamp": nil, "performative": nil, "broker": nil, "sequenceNumber": nil,
	"sender": {"agentId", "orgId"}, "recipient": {"agentId", "orgId"}, "content": {"body", "context", "mimeType"},
	"constraints": {"maxResponseTimeMs", "requiredTrustScore", "allowedPerformatives"},
}

// published refuses what the published schema does not have. It is in transcripts of earlier
// brokers, so whoever reads entries does not ask.
func (d document) published() error {
	for _, f := range d {
		name := string(f.text[1 : f.name-1])
		inner, known := envelopesMembers[name]
		if !known {
			continue
		}
		if f.value().Kind() == 'n' {
			return malformed("/"+name, "is null; leave it out")
		}
		if inner == nil || f.value().Kind() != '{' {
			continue
		}
		var room [4]member
		members, err := split(room[:0], f.value())
		if err != nil {
			return malformed("/"+name, "not I-JSON")
		}
		for _, m := range members {
			at := string(m.text[1 : m.name-1])
			if name == "sender" && at == "trustScore" {
				return malformed("/sender/trustScore", "is the registry's to say")
			}
			if m.value().Kind() == 'n' && slices.Contains(inner, at) {
				return malformed("/"+name+"/"+at, "is null; leave it out")
			}
		}
	}
	return nil
}

func readCanonical(canonical jsontext.Value) (*Message, error) {
	if canonical.Kind() != '{' {
		return nil, malformed("", "want a JSON object")
	}
	doc, err := split(make(document, 0, 12), canonical)
	if err != nil {
		return nil, malformed("", "not I-JSON")
	}
	w, err := readFields(doc)
	if err != nil {
		return nil, err
	}
	m, err := w.message()
	if err != nil {
		return nil, err
	}
	m.envelope = slices.DeleteFunc(doc, func(f member) bool { return f.is("integrity") })
	return m, m.readIntegrity(w)
}

func (m *Message) readIntegrity(w fields) error {
	var previous *string
	if w.integrity != nil {
		if w.integrity.Kind() != '{' {
			return malformed("/integrity", "want an object")
		}
		doc, err := split(make(document, 0, 2), w.integrity)
		if err != nil {
			return malformed("/integrity", "not I-JSON")
		}
		for _, name := range brokersFields {
			if doc.get(name) != nil {
				return malformed("/integrity/"+name, "is the broker's to write")
			}
		}
		// A null here would be lost on delivery, and the signature with it.
		for _, name := range []string{"signature", "previousHash"} {
			if v := doc.get(name); v != nil && v.Kind() != '"' {
				return malformed("/integrity/"+name, "want a string")
			}
		}
		if v := doc.get("signature"); v != nil {
			m.Signature = text(v)
		}
		if v := doc.get("previousHash"); v != nil {
			hash := text(v)
			previous = &hash
		}
		if m.integrity = doc; m.Signature == "" {
			m.integrity = doc.without("signature")
		}
	}
	var room [2]member
	rest := document(room[:0])
	for _, field := range m.integrity {
		if !field.is("signature") {
			rest = append(rest, field)
		}
	}
	m.signed = sealed(merge{a: m.envelope}, merge{a: rest})
	return m.readLink(w.sequence, previous)
}

// text reads a canonical JSON string.
func text(v jsontext.Value) string {
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	plain, err := jsontext.AppendUnquote(nil, v)
	if err != nil { // only for what is no canonical string
		return ""
	}
	return string(plain)
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
	case !Hash(*previous).Valid():
		return malformed("/integrity/previousHash", "want sha256: and 64 lower-case hex digits")
	}
	link := Link{PreviousHash: Hash(*previous)}
	if sequence.Kind() != '0' || json.Unmarshal(sequence, &link.Sequence) != nil {
		return malformed("/sequenceNumber", "want a whole number from 0")
	}
	m.Link = &link
	return nil
}

// DecodeBody reads the body into its type, with what Open has opened. Validate it against its schema
// first: that words the faults better.
func (m *Message) DecodeBody() error {
	body := NewBody(m.Performative)
	if body == nil {
		return malformed("/performative", "%q is none of the thirteen performatives", m.ActName)
	}
	if err := Unmarshal(m.OpenBody(), body, "/content/body"); err != nil {
		return err
	}
	m.Body = body
	return nil
}

// SigningBytes are what the sender signs: the canonical envelope as the sender
// made it without integrity.signature; integrity itself stays. Do not change
// them.
func (m *Message) SigningBytes() []byte { return slices.Clip(m.signed) }

// Digest reports whether two messages are the same one, byte for byte once
// canonical.
func (m *Message) Digest() [32]byte { return sha256.Sum256(m.signed) }

// Equal reports whether two canonical values are the same.
func Equal(a, b jsontext.Value) bool { return bytes.Equal(a, b) }
