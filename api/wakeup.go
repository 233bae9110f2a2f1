package api

import (
	"time"

	"github.com/parley-asp/parley/performatives"
)

// SetWakeup is the request of wakeup.set. It replaces what was set for the same session. Without a URL
// and a subject nothing is called any more.
type SetWakeup struct {
	Session performatives.SessionID `json:"sessionId,omitzero"` // absent: all of the caller's
	URL     string                  `json:"url,omitzero"`       // that is called
	Subject string                  `json:"subject,omitzero"`   // of NATS, below the caller's reply prefix, that is asked
	Turns   bool                    `json:"turns,omitzero"`     // only while a turn waits for the caller
	Secret  string                  `json:"secret,omitzero"`    // that signs the calls: whsec_ and the base64 of 24 to 64 bytes; absent: one is made
	Token   string                  `json:"token,omitzero"`     // that goes with calls to the URL, as Bearer; one that begins with whsec_ is the secret
}

// A Wakeup is the reply of wakeup.set.
type Wakeup struct {
	Session performatives.SessionID `json:"sessionId,omitzero"`
	URL     string                  `json:"url,omitzero"`
	Subject string                  `json:"subject,omitzero"`
	Turns   bool                    `json:"turns,omitzero"`
	Secret  string                  `json:"secret,omitzero"` // one that was made; it is not shown again
}

// A WakeupCall is the body of a call. What happened is in the session's snapshot with since.
type WakeupCall struct {
	Type    string                  `json:"type"` // WakeupType
	Hash    performatives.Hash      `json:"hash"` // of the entry; the call's Webhook-Id
	At      time.Time               `json:"at"`   // of the entry's delivery
	Agent   performatives.Agent     `json:"agentId"`
	Session performatives.SessionID `json:"sessionId"`
	Since   uint64                  `json:"since"` // sequence number of the entry
}

// WakeupType is the type of the calls.
const WakeupType = "session.news"
