package performatives

import (
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Draft is a message in the making, on the sender's side.
type Draft struct {
	ID          MessageID
	Session     SessionID
	Timestamp   time.Time
	Sender      Agent
	OrgID       string
	Recipient   Agent
	Body        Body
	Context     []jsontext.Value
	Constraints *Constraints
	Link        *Link
	Broker      Key // whom it is for; "" is any that receives it
}

// Envelope writes the draft in canonical form and, unless the signer is nil,
// signs it.
func (d Draft) Envelope(s Signer) ([]byte, error) { return d.envelope(s, d.Body) }

// Submission writes the draft as Envelope does, with members of its body sealed and what opens them
// beside it. The salts are read from random.
func (d Draft) Submission(s Signer, random io.Reader, members ...string) ([]byte, error) {
	raw, err := json.Marshal(d.Body)
	if err != nil {
		return nil, err
	}
	body, parts, err := Seal(d.Body.Act(), raw, random, members...)
	if err != nil {
		return nil, err
	}
	envelope, err := d.envelope(s, body)
	if err != nil {
		return nil, err
	}
	return Submission(envelope, parts)
}

func (d Draft) envelope(s Signer, body any) ([]byte, error) {
	type sender struct {
		AgentID Agent  `json:"agentId"`
		OrgID   string `json:"orgId,omitzero"`
	}
	type content struct {
		MimeType string           `json:"mimeType"`
		Body     any              `json:"body"`
		Context  []jsontext.Value `json:"context,omitzero"`
	}
	type integrity struct {
		PreviousHash Hash `json:"previousHash,omitzero"`
	}
	w := struct {
		Version        string       `json:"version"`
		MessageID      MessageID    `json:"messageId"`
		SessionID      SessionID    `json:"sessionId"`
		SequenceNumber *uint64      `json:"sequenceNumber,omitzero"`
		Timestamp      string       `json:"timestamp"`
		Sender         sender       `json:"sender"`
		Recipient      Agent        `json:"recipient,omitzero"`
		Performative   Performative `json:"performative"`
		Content        content      `json:"content"`
		Constraints    *Constraints `json:"constraints,omitzero"`
		Broker         Key          `json:"broker,omitzero"`
		Integrity      integrity    `json:"integrity"`
	}{
		Version: Version, MessageID: d.ID, SessionID: d.Session,
		Timestamp: FormatTime(d.Timestamp),
		Sender:    sender{d.Sender, d.OrgID}, Recipient: d.Recipient,
		Performative: d.Body.Act(), Constraints: d.Constraints, Broker: d.Broker,
		Content: content{"application/json", body, d.Context},
	}
	if d.Link != nil {
		w.SequenceNumber, w.Integrity.PreviousHash = &d.Link.Sequence, d.Link.PreviousHash
	}
	raw, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return Canonical(raw)
	}
	return Sign(raw, s)
}

// FormatTime writes a time as envelopes have it: RFC 3339 in UTC, to the millisecond, so that it sorts.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// A RawDraft is a message that is made of JSON which nobody has checked. Equal drafts make
// equal bytes.
type RawDraft struct {
	ID           MessageID
	Session      SessionID
	Timestamp    time.Time
	Sender       Agent
	Performative string
	Recipient    jsontext.Value
	Body         jsontext.Value
	Context      []jsontext.Value
	Constraints  jsontext.Value
	Link         *Link
}

// Envelope writes the draft and, unless the signer is nil, signs it. What is too malformed
// to sign stays unsigned: the broker says what is wrong with it.
func (d RawDraft) Envelope(s Signer) ([]byte, error) {
	type content struct {
		Body     jsontext.Value   `json:"body,omitzero"`
		Context  []jsontext.Value `json:"context,omitzero"`
		MimeType string           `json:"mimeType"`
	}
	type integrity struct {
		PreviousHash Hash `json:"previousHash,omitzero"`
	}
	type sender struct {
		AgentID Agent `json:"agentId"`
	}
	w := struct { // in canonical order, which is the quickest to read
		Constraints    jsontext.Value `json:"constraints,omitzero"`
		Content        content        `json:"content"`
		Integrity      integrity      `json:"integrity"`
		MessageID      MessageID      `json:"messageId"`
		Performative   string         `json:"performative"`
		Recipient      jsontext.Value `json:"recipient,omitzero"`
		Sender         sender         `json:"sender"`
		SequenceNumber *uint64        `json:"sequenceNumber,omitzero"`
		SessionID      SessionID      `json:"sessionId"`
		Timestamp      string         `json:"timestamp"`
		Version        string         `json:"version"`
	}{
		Constraints: d.Constraints, Content: content{d.Body, d.Context, "application/json"},
		MessageID: d.ID, Performative: d.Performative, Recipient: d.Recipient, Sender: sender{d.Sender},
		SessionID: d.Session, Timestamp: FormatTime(d.Timestamp), Version: Version,
	}
	if d.Link != nil {
		w.SequenceNumber, w.Integrity.PreviousHash = &d.Link.Sequence, d.Link.PreviousHash
	}
	raw, err := json.Marshal(w)
	if err != nil || s == nil {
		return raw, err
	}
	if signed, err := Sign(raw, s); err == nil {
		return signed, nil
	}
	return raw, nil
}
