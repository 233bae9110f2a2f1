package api

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// An Entry is what a reader who verifies nothing takes from an entry of a transcript.
// transcript.Read reads one that is to be verified.
type Entry struct {
	TurnEntry

	ID        performatives.MessageID
	Session   performatives.SessionID
	Timestamp time.Time // by the sender's clock
	Recipient jsontext.Value
	Context   []jsontext.Value
	Receipt   performatives.Receipt
	Bytes     jsontext.Value // as delivered
}

// ReadEntry reads an entry as session.messages returns it.
func ReadEntry(data jsontext.Value) (Entry, error) {
	var e struct {
		ID           performatives.MessageID `json:"messageId"`
		Session      performatives.SessionID `json:"sessionId"`
		Sequence     uint64                  `json:"sequenceNumber"`
		Timestamp    time.Time               `json:"timestamp"`
		Performative string                  `json:"performative"`
		Recipient    jsontext.Value          `json:"recipient"`
		Sender       struct {
			Agent performatives.Agent `json:"agentId"`
		} `json:"sender"`
		Content struct {
			Body    jsontext.Value   `json:"body"`
			Context []jsontext.Value `json:"context"`
		} `json:"content"`
		Integrity struct {
			OnBehalfOf performatives.Agent   `json:"onBehalfOf"`
			Receipt    performatives.Receipt `json:"receipt"`
		} `json:"integrity"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return Entry{}, fmt.Errorf("an entry of a transcript cannot be read: %w", err)
	}
	return Entry{
		TurnEntry: TurnEntry{
			Sequence: e.Sequence, From: e.Sender.Agent, OnBehalfOf: e.Integrity.OnBehalfOf, Performative: e.Performative,
			Body: e.Content.Body, At: e.Integrity.Receipt.AcceptedAt,
		},
		ID: e.ID, Session: e.Session, Timestamp: e.Timestamp, Recipient: e.Recipient, Context: e.Content.Context,
		Receipt: e.Integrity.Receipt, Bytes: data,
	}, nil
}
