package performatives

import (
	"encoding/base64"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The members that a sender may seal (PROTOCOL.md §7): the body then has their digests, and what
// they say goes beside the act, to the sender's own organisation only.
const (
	SealContext   = "context"         // of an ESCALATE
	SealSuggested = "suggestedAction" // of an ESCALATE
	SealAuthority = "authority"       // of a resolution
	SealComment   = "comment"         // of a resolution
)

// SaltBytes is how many random bytes a sealed member is salted with.
const SaltBytes = 32

// A SealedPart opens a sealed member: its value, and the salt of its digest.
type SealedPart struct {
	Salt  string         `json:"salt" jsonschema:"pattern=^[A-Za-z0-9_-]{43}$,description=32 random bytes in base64url"`
	Value jsontext.Value `json:"value"`
}

// SealedParts open the sealed members of one act, by name.
type SealedParts map[string]SealedPart

// Digests stand for sealed members, by name: SHA-256 over the RFC 8785 form of [salt, member, value].
type Digests map[string]Hash

// UnmarshalJSON reads digests. What is none is no fault here but the schema's to refuse: a member of
// this name said nothing before there were sealed parts.
func (d *Digests) UnmarshalJSON(data []byte) error {
	read := map[string]Hash{}
	if jsontext.Value(data).Kind() == '{' && json.Unmarshal(data, &read) == nil && len(read) > 0 {
		*d = read
	}
	return nil
}

// Has reports whether a member is sealed.
func (d Digests) Has(member string) bool { _, has := d[member]; return has }

// Digest is what stands for the part in the body.
func (p SealedPart) Digest(member string) (Hash, error) {
	raw, err := marshalCanonical([]any{p.Salt, member, p.Value})
	if err != nil {
		return "", err
	}
	return HashOf(raw), nil
}

// text names what is sealed.
func (d Digests) text() Prose {
	if len(d) == 0 {
		return Prose{}
	}
	return Prose{Name: "sealed", Text: strings.Join(slices.Sorted(maps.Keys(d)), ", ")}
}

func (p SealedPart) salted() bool {
	salt, err := base64.RawURLEncoding.Strict().DecodeString(p.Salt)
	return err == nil && len(salt) == SaltBytes
}

// sealable are the members that may be sealed in a body, and where in the body they are: in the
// body itself, or in its data.
func sealable(act Performative, body document) (in string, members []string) {
	switch act {
	case Escalate:
		return "", []string{SealContext, SealSuggested}
	case Inform:
		kind := body.get("type")
		if kind == nil || kind.Kind() == '"' && text(kind) == "" {
			kind = body.get("informType")
		}
		if kind.Kind() == '"' && text(kind) == Resolution && body.get("data").Kind() == '{' {
			return "data", []string{SealAuthority, SealComment}
		}
	default:
	}
	return "", nil
}

// A seam is a body taken apart where its sealed members are.
type seam struct {
	body    document
	in      string
	holder  document
	members []string
	digests Digests
}

func seamOf(act Performative, raw jsontext.Value) (s seam, err error) {
	if s.body, err = split(nil, raw); err != nil {
		return s, malformed("/content/body", "not I-JSON")
	}
	if s.in, s.members = sealable(act, s.body); s.members == nil {
		return s, nil
	}
	if s.holder = s.body; s.in != "" {
		if s.holder, err = split(nil, s.body.get(s.in)); err != nil {
			return s, malformed("/content/body/"+s.in, "not I-JSON")
		}
	}
	if digests := s.holder.get("sealed"); digests != nil {
		return s, s.digests.UnmarshalJSON(digests)
	}
	return s, nil
}

func (s seam) path(member string) string {
	if s.in == "" {
		return "/" + member
	}
	return "/" + s.in + "/" + member
}

// with is the body with other members in place of some.
func (s seam) with(without []string, add map[string]jsontext.Value) (jsontext.Value, error) {
	var fresh document
	var room texts
	for name, v := range add {
		fresh = append(fresh, room.field(name, v))
	}
	slices.SortFunc(fresh, func(a, b member) int { return slices.Compare(a.text[:a.name], b.text[:b.name]) })
	holder := merge{a: s.holder.without(without...), b: fresh}.appendTo(nil)
	if s.in == "" {
		return holder, nil
	}
	return merge{a: s.body.without(s.in), b: document{new(texts).field(s.in, holder)}}.appendTo(nil), nil
}

// Seal puts digests in the place of members of a body, as far as it has them and its act lets them be
// sealed. The salts are read from random. Without anything to seal the body stays as it is.
func Seal(act Performative, body jsontext.Value, random io.Reader, members ...string) (jsontext.Value, SealedParts, error) {
	canonical, err := Canonical(body)
	if err != nil || canonical.Kind() != '{' {
		return body, nil, err
	}
	s, err := seamOf(act, canonical)
	if err != nil {
		return body, nil, err
	}
	parts, digests, sealed := SealedParts{}, Digests{}, []string{"sealed"}
	for name, digest := range s.digests {
		digests[name] = digest
	}
	for _, name := range members {
		value := s.holder.get(name)
		if value == nil || !slices.Contains(s.members, name) {
			continue
		}
		salt := make([]byte, SaltBytes)
		if _, err := io.ReadFull(random, salt); err != nil {
			return body, nil, err
		}
		p := SealedPart{Salt: base64.RawURLEncoding.EncodeToString(salt), Value: slices.Clone(value)}
		if digests[name], err = p.Digest(name); err != nil {
			return body, nil, err
		}
		parts[name], sealed = p, append(sealed, name)
	}
	if len(parts) == 0 {
		return body, nil, nil
	}
	stands, err := marshalCanonical(digests)
	if err != nil {
		return body, nil, err
	}
	made, err := s.with(sealed, map[string]jsontext.Value{"sealed": stands})
	return made, parts, err
}

// Digests are of the members that the message seals.
func (m *Message) Digests() Digests {
	if m.Performative != Escalate && m.Performative != Inform {
		return nil
	}
	s, err := seamOf(m.Performative, m.RawBody)
	if err != nil {
		return nil
	}
	return s.digests
}

// Open puts what parts say in the place of their digests, and so sets OpenBody: all sealed members and
// nothing else. The error is a *Malformed whose path is in the body.
func (m *Message) Open(parts SealedParts) error {
	s, err := seamOf(m.Performative, m.RawBody)
	if err != nil {
		return err
	}
	for name := range s.digests {
		if !slices.Contains(s.members, name) {
			return malformed(s.path("sealed/"+name), "cannot be sealed")
		}
		if s.holder.get(name) != nil {
			return malformed(s.path(name), "is open and sealed; send one of the two")
		}
		if _, has := parts[name]; !has {
			return malformed(s.path("sealed/"+name), "is not opened: send its salt and value beside the envelope")
		}
	}
	add := map[string]jsontext.Value{}
	for name, p := range parts {
		digest, has := s.digests[name]
		if !has {
			return malformed(s.path("sealed"), "does not have %.40q, which was sent beside the envelope", name)
		}
		if !p.salted() {
			return malformed(s.path("sealed/"+name), "wants a salt of 32 random bytes in base64url")
		}
		if got, err := p.Digest(name); err != nil || got != digest {
			return malformed(s.path("sealed/"+name), "is not the digest of the salt and value that were sent beside the envelope")
		}
		if add[name], err = Canonical(p.Value); err != nil {
			return malformed(s.path("sealed/"+name), "not I-JSON")
		}
	}
	if len(add) == 0 {
		return nil
	}
	m.openBody, err = s.with([]string{"sealed"}, add)
	m.Parts, m.Body = parts, nil
	return err
}

// Opened is a body with what parts say in the place of their digests, for who takes them as the
// broker has checked them.
func Opened(act Performative, body jsontext.Value, parts SealedParts) jsontext.Value {
	if len(parts) == 0 {
		return body
	}
	s, err := seamOf(act, body)
	if err != nil {
		return body
	}
	add := map[string]jsontext.Value{}
	for name, p := range parts {
		add[name] = p.Value
	}
	if opened, err := s.with([]string{"sealed"}, add); err == nil {
		return opened
	}
	return body
}

// OpenBody is the body with what is known of its sealed members.
func (m *Message) OpenBody() jsontext.Value {
	if m.openBody != nil {
		return m.openBody
	}
	return m.RawBody
}

// Submission is what a sender sends: the envelope, with the parts beside it where there are some.
func Submission(envelope []byte, parts SealedParts) ([]byte, error) {
	if len(parts) == 0 {
		return envelope, nil
	}
	return json.Marshal(struct {
		Envelope jsontext.Value `json:"envelope"`
		Sealed   SealedParts    `json:"sealed"`
	}{envelope, parts}, json.Deterministic(true))
}

// readSubmission tells an envelope alone from one with parts beside it.
func readSubmission(canonical jsontext.Value) (envelope jsontext.Value, parts SealedParts, err error) {
	if canonical.Kind() != '{' {
		return canonical, nil, nil
	}
	var room [12]member
	doc, err := split(room[:0], canonical)
	if err != nil {
		return nil, nil, malformed("", "not I-JSON")
	}
	envelope, sealed := doc.get("envelope"), doc.get("sealed")
	if len(doc) > 2 || envelope.Kind() != '{' || len(doc) == 2 && sealed == nil {
		return canonical, nil, nil
	}
	if sealed == nil {
		return envelope, nil, nil
	}
	parts, err = ReadParts(sealed)
	return envelope, parts, err
}

// maxParts is how many members one act can seal.
const maxParts = 2

// ReadParts reads parts. The error is a *Malformed.
func ReadParts(sealed jsontext.Value) (parts SealedParts, err error) {
	if sealed.Kind() != '{' || Unmarshal(sealed, &parts, "/sealed") != nil || len(parts) > maxParts {
		return nil, malformed("/sealed", "want a salt and a value of each sealed member")
	}
	for name, p := range parts {
		if len(p.Value) == 0 {
			return nil, malformed("/sealed/"+name, "want a salt and a value")
		}
	}
	return parts, nil
}

// Header writes parts as JSON in ASCII, which every header takes.
func (p SealedParts) Header() (string, error) {
	raw, err := json.Marshal(p, json.Deterministic(true))
	if err != nil {
		return "", err
	}
	ascii := make([]byte, 0, len(raw))
	for _, r := range string(raw) {
		switch {
		case r < 0x7f:
			ascii = append(ascii, byte(r)) //nolint:gosec // below 0x7f
		case r < 0x10000:
			ascii = appendEscape(ascii, r)
		default:
			r -= 0x10000
			ascii = appendEscape(appendEscape(ascii, 0xd800+r>>10), 0xdc00+r&0x3ff)
		}
	}
	return string(ascii), nil
}

func appendEscape(to []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(to, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
