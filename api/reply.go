package api

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// An Acceptance answers a submit that was accepted.
type Acceptance struct {
	Accepted   bool                    `json:"accepted"` // true
	Session    performatives.SessionID `json:"sessionId"`
	Message    performatives.MessageID `json:"messageId"`
	Sequence   uint64                  `json:"sequenceNumber"`
	Hash       performatives.Hash      `json:"hash"`
	State      session.Phase           `json:"state"`
	AcceptedAt string                  `json:"acceptedAt"`
	Duplicate  bool                    `json:"duplicate,omitzero"` // it was accepted before
}

// An ErrorReply is the answer to what was refused. It comes as a NATS micro error:
// header Nats-Service-Error-Code is the HTTP status of the code.
type ErrorReply struct {
	Accepted bool  `json:"accepted"` // false
	Error    Error `json:"error"`
}

// An Error is a refusal on the wire.
type Error struct {
	Code      session.Code     `json:"code"`
	Category  session.Category `json:"category"`
	Message   string           `json:"message"`
	Retryable bool             `json:"retryable"`
	Details   jsontext.Value   `json:"details,omitzero"`
}

// Limited are the details of a rate_limited.
type Limited struct {
	Limit      string `json:"limit"`              // rate, bytes, bytesOut, cpu, items, inFlight, buffered, streams, of an organisation organisationBytes …, of two pairItems, or sessions, consumers, connections
	RetryAfter int64  `json:"retryAfterMs"`       // when it may be accepted
	MaxBytes   int    `json:"maxBytes,omitzero"`  // in a minute
	BytesLeft  *int   `json:"bytesLeft,omitzero"` // of them, now
}

// RateLimited refuses what exceeds a limit of one principal.
func RateLimited(limit string, wait time.Duration, format string, args ...any) *session.Refusal {
	return session.Refuse(session.RateLimited, format, args...).With(Limited{Limit: limit, RetryAfter: wait.Milliseconds()})
}

// BytesLimited refuses what exceeds a quota of bytes.
func BytesLimited(limit string, wait time.Duration, most, left int, format string, args ...any) *session.Refusal {
	return session.Refuse(session.RateLimited, format, args...).
		With(Limited{Limit: limit, RetryAfter: wait.Milliseconds(), MaxBytes: most, BytesLeft: &left})
}

// Headers of a NATS micro error.
const (
	ErrorHeader     = "Nats-Service-Error"
	ErrorCodeHeader = "Nats-Service-Error-Code"
)

// Headers of inbox copies and transcript entries: what a reader may want
// before it reads the JSON. The envelope alone is the truth.
const (
	SequenceHeader = "Asp-Sequence" // the entry's sequenceNumber
	FormatHeader   = "Asp-Format"   // version of the transcript's format
	SealedHeader   = "Asp-Sealed"   // the parts that open the entry, as JSON; only to the organisation whose they are
	RoutesHeader   = "Asp-Routes"   // who is asked to decide, where the entry has digests of them; the broker's own
	SessionHeader  = "Asp-Session"  // of a leaf of the public log: where it comes from
)

// AskerHeader of an act that one broker forwards to another: where whoever
// submitted it waits for the answer.
const AskerHeader = "Asp-Asker"

// AgentHeader is of an HTTP request: as whom it is meant to act. It is refused if its token is another's.
const AgentHeader = "Asp-Agent"

// Bounds of a refusal on the wire. A counterparty decides how long some of them would be, such as
// the list of open fields.
const (
	maxMessageBytes = 4 << 10
	maxDetailsBytes = MaxItemBytes + 8<<10 // some have an item of the escalation inbox
)

// Refused writes a refusal for the wire. What is too long is cut, and details that are say so:
// they have the member truncated.
func Refused(r *session.Refusal) ErrorReply {
	e := Error{Code: r.Code, Category: r.Code.Category(), Message: r.Message, Retryable: r.Code.Retryable()}
	if fit.TextSize(e.Message) > maxMessageBytes {
		e.Message = fit.Text(e.Message, maxMessageBytes)
	}
	if r.Details != nil {
		if raw, err := json.Marshal(r.Details, json.Deterministic(true)); err == nil {
			e.Details = boundedDetails(raw)
		}
	}
	return ErrorReply{Error: e}
}

func boundedDetails(raw jsontext.Value) jsontext.Value {
	if len(raw) <= maxDetailsBytes {
		return raw
	}
	cut := fit.JSON(raw, maxDetailsBytes)
	if cut.Kind() != '{' {
		return cut
	}
	cut = cut[:len(cut)-1]
	if len(cut) > 1 {
		cut = append(cut, ',')
	}
	return append(cut, `"truncated":true}`...)
}

// Refusal reads a refusal from the wire; Details keeps its JSON.
func (e ErrorReply) Refusal() *session.Refusal {
	r := &session.Refusal{Code: e.Error.Code, Message: e.Error.Message}
	if len(e.Error.Details) > 0 {
		r.Details = e.Error.Details
	}
	return r
}
