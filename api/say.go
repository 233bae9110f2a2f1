package api

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// Say is the request of session.say: an act of a hosted agent, without its envelope.
type Say struct {
	Session      performatives.SessionID `json:"sessionId,omitzero"` // "" opens a new one
	Performative string                  `json:"performative"`
	Body         jsontext.Value          `json:"body,omitzero"`
	Recipient    jsontext.Value          `json:"recipient,omitzero"`
	Constraints  jsontext.Value          `json:"constraints,omitzero"`
	Message      performatives.MessageID `json:"messageId,omitzero"` // "" makes one
	Context      []jsontext.Value        `json:"context,omitzero"`
	Open         bool                    `json:"open,omitzero"`   // the other sides read what is usually sealed, too
	IfHead       performatives.Hash      `json:"ifHead,omitzero"` // of the newest entry that the agent knows; refused if it is another
	Key          string                  `json:"key,omitzero"`    // by which it is retried; "" if it is not
	Asked        performatives.Hash      `json:"asked,omitzero"`  // digest of the request that became it, which is compared under its key; "" compares the act
}
