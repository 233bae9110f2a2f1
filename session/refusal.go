package session

import (
	"errors"
	"fmt"

	"github.com/parley-asp/parley/performatives"
)

// A Code is why an act was refused. The set is closed (PROTOCOL.md §9).
type Code string

// A Category groups codes by what went wrong.
type Category string

// The codes.
const (
	MalformedEnvelope    Code = "malformed"
	VersionUnsupported   Code = "version_unsupported"
	UnknownPerformative  Code = "unknown_performative"
	StaleTimestamp       Code = "stale_timestamp"
	SignatureInvalid     Code = "signature_invalid"
	Unauthorized         Code = "unauthorized"
	AuthorityExceeded    Code = "authority_exceeded"
	OwnProposal          Code = "own_proposal"
	UnknownSession       Code = "unknown_session"
	UnknownAgent         Code = "unknown_agent"
	WrongState           Code = "wrong_state"
	WrongTurn            Code = "wrong_turn"
	Duplicate            Code = "duplicate"
	ChainConflict        Code = "chain_conflict"
	ProposalUnknown      Code = "proposal_unknown"
	ProposalNotOpen      Code = "proposal_not_open"
	ClarificationPending Code = "clarification_pending"
	EscalationResolved   Code = "escalation_resolved"
	TooLarge             Code = "too_large"
	SchemaInvalid        Code = "schema_invalid"
	SchemaUnsupported    Code = "schema_unsupported"
	ModeViolation        Code = "mode_violation"
	SessionEscalated     Code = "session_escalated"
	InsufficientTrust    Code = "insufficient_trust_score"
	RateLimited          Code = "rate_limited"
	Unavailable          Code = "unavailable"
)

// The categories.
const (
	CategoryProtocol  Category = "protocol"
	CategorySchema    Category = "schema"
	CategoryAuthority Category = "authority"
	CategoryIntegrity Category = "integrity"
	CategoryTemporal  Category = "temporal"
	CategoryTrust     Category = "trust"
	CategoryLimit     Category = "limit"
	CategoryInternal  Category = "internal"
)

// codes gives each code its HTTP status, its category, whether the same act may be
// accepted later without being changed, and whether the broker has judged it: it looked
// before for the same bytes among what it accepted.
var codes = map[Code]struct {
	status    int
	category  Category
	retryable bool
	judged    bool
}{
	MalformedEnvelope:    {400, CategoryProtocol, false, false},
	VersionUnsupported:   {400, CategoryProtocol, false, false},
	UnknownPerformative:  {400, CategoryProtocol, false, false},
	StaleTimestamp:       {400, CategoryTemporal, true, true},
	SignatureInvalid:     {401, CategoryIntegrity, false, false},
	Unauthorized:         {403, CategoryAuthority, false, false},
	AuthorityExceeded:    {403, CategoryAuthority, false, true},
	OwnProposal:          {403, CategoryAuthority, false, true},
	UnknownSession:       {404, CategoryProtocol, false, true},
	UnknownAgent:         {404, CategoryProtocol, false, false},
	WrongState:           {409, CategoryProtocol, false, true},
	WrongTurn:            {409, CategoryProtocol, true, true},
	Duplicate:            {409, CategoryProtocol, false, true},
	ChainConflict:        {409, CategoryIntegrity, false, true},
	ProposalUnknown:      {409, CategoryProtocol, false, true},
	ProposalNotOpen:      {409, CategoryProtocol, false, true},
	ClarificationPending: {409, CategoryProtocol, true, true},
	EscalationResolved:   {409, CategoryProtocol, false, true},
	TooLarge:             {413, CategoryLimit, false, false},
	SchemaInvalid:        {422, CategorySchema, false, true},
	SchemaUnsupported:    {422, CategorySchema, false, true},
	ModeViolation:        {422, CategoryProtocol, false, true},
	SessionEscalated:     {423, CategoryProtocol, true, true},
	InsufficientTrust:    {403, CategoryTrust, false, true},
	RateLimited:          {429, CategoryLimit, true, false},
	Unavailable:          {503, CategoryInternal, true, false},
}

// Codes lists all codes, for tables and tests.
func Codes() []Code {
	all := make([]Code, 0, len(codes))
	for c := range codes {
		all = append(all, c)
	}
	return all
}

// Status is the code's HTTP status, which is the micro error code too.
func (c Code) Status() int { return codes[c].status }

// Category is what kind of fault it is.
func (c Code) Category() Category { return codes[c].category }

// Retryable reports whether the same act may be accepted later.
func (c Code) Retryable() bool { return codes[c].retryable }

// Judged reports whether the broker refuses so only after it looked for the same bytes among what it
// accepted (PROTOCOL.md §3): no earlier copy of a message that is refused so was accepted.
func (c Code) Judged() bool { return codes[c].judged }

// A Refusal is the broker's no: a code for machines, a sentence that tells a
// person what was wrong and what is allowed instead.
type Refusal struct {
	Code    Code
	Message string
	Details any // JSON-marshalled; nil is none
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Message }

// Is lets errors.Is match refusals by code alone.
func (r *Refusal) Is(target error) bool {
	other, ok := target.(*Refusal)
	return ok && other.Code == r.Code
}

// Refuse makes a refusal.
func Refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With adds details.
func (r *Refusal) With(details any) *Refusal {
	r.Details = details
	return r
}

// A Fault is one way in which a body is not what its schema wants.
type Fault struct {
	Path    string `json:"path"` // JSON pointer into the body
	Rule    string `json:"rule"` // the JSON Schema keyword, or a rule of the protocol
	Message string `json:"message"`
}

// RefuseSchema words a schema_invalid of one or more faults.
func RefuseSchema(faults ...Fault) *Refusal {
	r := Refuse(SchemaInvalid, "the body does not fit its schema: %s", faults[0].Message)
	if n := len(faults) - 1; n > 0 {
		r.Message += fmt.Sprintf(" (and %d more, see details)", n)
	}
	return r.With(faults)
}

// RefuseUnreadable refuses what is no I-JSON of the type that is wanted.
func RefuseUnreadable(err error) error {
	if errors.Is(err, performatives.ErrTooLarge) {
		return RefuseTooLarge(performatives.MaxEnvelope, "%s", err)
	}
	r := Refuse(MalformedEnvelope, "%s", err)
	var bad *performatives.Malformed
	if errors.As(err, &bad) && bad.Path != "" {
		r = r.With(map[string]string{"path": bad.Path})
	}
	return r
}

// RefuseTooLarge refuses what has more than so many bytes.
func RefuseTooLarge(most int, format string, args ...any) error {
	return Refuse(TooLarge, format, args...).With(map[string]int{"maxBytes": most})
}

// NoSuchSession answers for a session that does not exist and for one in which
// the caller has no part, in the same bytes: non-participants learn nothing.
func NoSuchSession() *Refusal {
	return Refuse(UnknownSession, "there is no such session, or you have no part in it; a PROPOSE of type session-invitation opens one")
}

// Violation refuses in the name of a mode's rule.
func Violation(rule, format string, args ...any) *Refusal {
	return Refuse(ModeViolation, format, args...).With(map[string]string{"rule": rule})
}

// Busy refuses what the broker cannot answer now, for whatever reason of its own.
func Busy() *Refusal {
	return Refuse(Unavailable, "the broker cannot answer now; ask again with the same bytes")
}

// CodeOf is the code as which an error is answered: what is no refusal is an internal cause.
func CodeOf(err error) Code {
	if refusal, is := errors.AsType[*Refusal](err); is {
		return refusal.Code
	}
	return Unavailable
}
