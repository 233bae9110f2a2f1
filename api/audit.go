package api

import "github.com/parley-asp/parley/performatives"

// AuditTranscript is the request of audit.messages.
type AuditTranscript struct {
	Session performatives.SessionID `json:"sessionId"`
	Cursor  uint64                  `json:"cursor,omitzero"` // next of the page before
}

// Stored is a page of audit.messages.
type Stored struct {
	Messages [][]byte `json:"messages"`      // base64
	Next     uint64   `json:"next,omitzero"` // absent on the last page
}

// ListAudit is the request of audit.sessions.
type ListAudit struct {
	Cursor int `json:"cursor,omitzero"` // next of the page before
}

// AuditedSessions is a page of audit.sessions.
type AuditedSessions struct {
	Sessions []performatives.SessionID `json:"sessions"`
	Next     *int                      `json:"next,omitzero"` // absent on the last page
}

// AuditRef is the request of audit.session.
type AuditRef struct {
	Session performatives.SessionID `json:"sessionId"`
	Cursor  string                  `json:"cursor,omitzero"` // next of the page before
}

// Held is what a broker keeps of a session besides its transcript. Items, Copies and Inboxes
// are paged; the rest is on the first page only.
type Held struct {
	Session  performatives.SessionID `json:"sessionId"`
	At       string                  `json:"at"`                      // by the broker's clock
	Sequence *uint64                 `json:"sequenceNumber,omitzero"` // of the last entry, when it was looked up; absent without any
	Hash     performatives.Hash      `json:"hash,omitzero"`           // of that entry
	InboxAge int64                   `json:"inboxAgeMs"`              // after which inbox copies expire
	Index    *HeldRow                `json:"index,omitzero"`          // its row in the session list
	Timer    string                  `json:"timer,omitzero"`          // when its timer goes off
	Due      bool                    `json:"timerDue,omitzero"`       // a timer went off, and no broker has looked yet
	Items    []EscalationItem        `json:"items,omitzero"`          // of the escalation inbox, without transcripts
	Copies   []HeldCopy              `json:"copies"`                  // in its inboxes, each inbox in its order
	Inboxes  []HeldInbox             `json:"inboxes,omitzero"`        // instead of Copies, if there are more than MaxHeldCopies
	Next     string                  `json:"next,omitzero"`           // cursor of the next page; absent on the last
}

// A HeldRow is a session's row in the session list.
type HeldRow struct {
	State        string                `json:"state"`
	Participants []performatives.Agent `json:"participants"`
	Entries      uint64                `json:"entries"`         // of the transcript that it was made from
	Erased       string                `json:"erased,omitzero"` // when the session was erased
}

// A HeldCopy is one entry in one inbox.
type HeldCopy struct {
	Agent performatives.Agent `json:"agentId"`
	Hash  performatives.Hash  `json:"sha256"` // of its bytes
}

// MaxHeldCopies is how many inbox copies of one session audit.session lists. Copies grow
// with the square of the participants, so of more it only counts them.
const MaxHeldCopies = 20_000

// A HeldInbox is one inbox of a session with very many copies.
type HeldInbox struct {
	Agent  performatives.Agent `json:"agentId"`
	Copies uint64              `json:"copies"`
	Last   performatives.Hash  `json:"sha256"` // of the bytes of the last copy
}

// EraseSession is the request of session.erase.
type EraseSession struct {
	Session performatives.SessionID `json:"sessionId"`
}

// ErasedSession is the reply of session.erase.
type ErasedSession struct {
	Session performatives.SessionID `json:"sessionId"`
	Erased  string                  `json:"erased"`  // when, the first time
	Entries uint64                  `json:"entries"` // of which a line is left
}
