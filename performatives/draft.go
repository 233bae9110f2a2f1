package performatives

import (
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
	Broker      Key // whom it is for; "" is any that hears it
}

// Envelope writes the draft in canonical form and, unless the signer is nil,
// signs it.
func (d Draft) Envelope(s Signer) ([]byte, error) {
	type sender struct {
		AgentID Agent  `json:"agentId"`
		OrgID   string `json:"orgId,omitzero"`
	}
	type content struct {
		MimeType string           `json:"mimeType"`
		Body     Body             `json:"body"`
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
		Timestamp: d.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z"),
		Sender:    sender{d.Sender, d.OrgID}, Recipient: d.Recipient,
		Performative: d.Body.Act(), Constraints: d.Constraints, Broker: d.Broker,
		Content: content{"application/json", d.Body, d.Context},
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
