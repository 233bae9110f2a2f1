package api

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// DefaultWorker is who claims a turn if the request names nobody.
const DefaultWorker = "default"

// PickUpTurn is the request of turn.pickup. The reply is {} when nothing waits.
type PickUpTurn struct {
	Modes   []string                `json:"modes,omitzero"`     // only in these
	Session performatives.SessionID `json:"sessionId,omitzero"` // only in this one
	Lease   int64                   `json:"leaseMs,omitzero"`   // how long the claim lasts, at most and by default the broker's --claim-timeout
	Joined  bool                    `json:"joined,omitzero"`    // only those that words answer: no delegation that is offered, no result that is owed, nothing that is carried out, and nothing that agrees to more than words
	Worker  string                  `json:"worker,omitzero"`    // which of the caller's programs asks; over HTTP its token's id
}

// BeyondWords reports whether who accepts an offer, or the invitation of its session, agrees to more than
// words: to publish terms, or to obligations. These are the terms of the two.
func BeyondWords(invitation, offer jsontext.Value) bool {
	var asked struct {
		Policy struct {
			Publish   jsontext.Value `json:"publish"`
			Execution jsontext.Value `json:"execution"`
		} `json:"policy"`
	}
	var offered struct {
		Obligations jsontext.Value `json:"obligations"`
	}
	_ = json.Unmarshal(invitation, &asked) // terms that are no object ask for nothing
	_ = json.Unmarshal(offer, &offered)
	publish := asked.Policy.Publish
	return len(publish) > 0 && string(publish) != `"hash"` || asked.Policy.Execution.Kind() == 't' || offered.Obligations != nil
}

// A Turn is one that waits for the caller, claimed for one of its workers.
type Turn struct {
	Session         performatives.SessionID `json:"sessionId,omitzero"`
	Mode            string                  `json:"mode,omitzero"`
	OnBehalfOf      performatives.Agent     `json:"onBehalfOf,omitzero"` // whose turn it is, if not the caller's own
	Claim           *TurnClaim              `json:"claim,omitzero"`
	Turn            *TurnNumber             `json:"turn,omitzero"`
	Reference       string                  `json:"referenceId,omitzero"`     // what waits for an answer
	CounterpartyAct string                  `json:"counterpartyAct,omitzero"` // the performative that the turn answers; none at first
	History         []TurnEntry             `json:"history,omitzero"`         // the newest entries, oldest first
	View            *SessionView            `json:"view,omitzero"`            // as of session.get
	Terms           jsontext.Value          `json:"terms,omitzero"`           // of the invitation
	SeedAssessment  jsontext.Value          `json:"seedAssessment,omitzero"`  // of the invitation's terms
	Private         jsontext.Value          `json:"private,omitzero"`         // what the caller's side alone may know
	Truncated       bool                    `json:"truncated,omitzero"`       // history has not all entries, or a part of one
}

// A TurnClaim holds a turn for one worker.
type TurnClaim struct {
	ID    string `json:"id"`
	Until string `json:"until"` // then the turn waits for any worker again
}

// A TurnNumber says where the turns stand.
type TurnNumber struct {
	Number   uint64 `json:"number"`       // turns taken so far; in modes that do not count them, entries
	Cap      uint64 `json:"cap,omitzero"` // turns that the mode allows
	Deadline string `json:"deadline"`     // the answer has to come before
}

// A TurnEntry is one entry of the transcript in short.
type TurnEntry struct {
	Sequence     uint64              `json:"sequenceNumber"`
	From         performatives.Agent `json:"from"`
	OnBehalfOf   performatives.Agent `json:"onBehalfOf,omitzero"`
	Performative string              `json:"performative"`
	Body         jsontext.Value      `json:"body"`
	At           string              `json:"at"`
}

// RespondTurn is the request of turn.respond. A hosted principal says what it wants to
// say; any other sends the envelope that it has signed.
type RespondTurn struct {
	ID           string         `json:"turnId"` // a claim's id, or the session whose turn the caller has claimed
	Worker       string         `json:"worker,omitzero"`
	Performative string         `json:"performative,omitzero"`
	Body         jsontext.Value `json:"body,omitzero"`
	Assessment   jsontext.Value `json:"assessment,omitzero"` // becomes a member of body
	Message      string         `json:"message,omitzero"`    // likewise
	Recipient    jsontext.Value `json:"recipient,omitzero"`
	Envelope     jsontext.Value `json:"envelope,omitzero"` // signed, instead of all of these

	Session performatives.SessionID `json:"-"` // of a turn that is named by its claim, for a client that signs
}

// ReleaseTurn is the request of turn.release: the turn waits for any worker again.
type ReleaseTurn struct {
	ID     string `json:"turnId"`
	Worker string `json:"worker,omitzero"`
}

// ReleasedTurn is the reply of turn.release.
type ReleasedTurn struct {
	Session  performatives.SessionID `json:"sessionId"`
	Claim    string                  `json:"claimId"`
	Released bool                    `json:"released"`
}

// WaitTurn is the request of turn.wait.
type WaitTurn struct {
	Session performatives.SessionID `json:"sessionId,omitzero"` // only in this one
	Since   Cursor                  `json:"since,omitzero"`     // cursor of an answer before, or of the session's snapshot; by default that of the newest answer
	Seconds float64                 `json:"seconds,omitzero"`   // how long, at most 50; 0 answers at once
	Worker  string                  `json:"worker,omitzero"`    // which of the caller's programs asks; over HTTP its token's id
}

// A Cursor says what its caller was given. It is text, or the number that a snapshot has.
type Cursor string

// UnmarshalJSONFrom reads text or a number.
func (c *Cursor) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == '0' {
		raw, err := d.ReadValue()
		*c = Cursor(raw)
		return err
	}
	return json.UnmarshalDecode(d, (*string)(c))
}

// LongestWait is how long a call waits for something to happen, at most.
const LongestWait = 50 * time.Second

// WaitedTurn is the reply of turn.wait: the snapshot of a session with news that the caller was
// not given, or nothing.
type WaitedTurn struct {
	Snapshot *Snapshot `json:"snapshot,omitzero"`
	Nothing  bool      `json:"nothing,omitzero"`
	Cursor   Cursor    `json:"cursor"` // since of the next request
}

// TurnDetails are the details of a refusal that is about the claim, and not about the act.
type TurnDetails struct {
	Turn  string `json:"turn"`           // unclaimed, claimed, gone or another's
	Until string `json:"until,omitzero"` // of a claim
}

// TurnOf is what a refusal that came over the wire says of the claim, "" if it is not about
// that.
func TurnOf(refusal *session.Refusal) string {
	var details TurnDetails
	if raw, is := refusal.Details.(jsontext.Value); is && json.Unmarshal(raw, &details) == nil {
		return details.Turn
	}
	return ""
}

// What TurnDetails say of a turn.
const (
	TurnUnclaimed = "unclaimed"
	TurnClaimed   = "claimed"  // by another worker
	TurnUnsigned  = "unsigned" // its agent signs for itself, and sent no envelope
	TurnGone      = "gone"     // another face of the principal has answered, or the session went on
	TurnAnothers  = "another's"
)
