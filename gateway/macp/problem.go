package macpgateway

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/session"
)

// A code is one of MACP's registry of error codes.
type code string

const (
	unsupportedVersion code = "UNSUPPORTED_PROTOCOL_VERSION"
	invalidEnvelope    code = "INVALID_ENVELOPE"
	invalidRequest     code = "INVALID_REQUEST"
	invalidSessionID   code = "INVALID_SESSION_ID"
	sessionExists      code = "SESSION_ALREADY_EXISTS"
	sessionNotFound    code = "SESSION_NOT_FOUND"
	sessionNotOpen     code = "SESSION_NOT_OPEN"
	modeNotSupported   code = "MODE_NOT_SUPPORTED"
	forbidden          code = "FORBIDDEN"
	unauthenticated    code = "UNAUTHENTICATED"
	duplicateMessage   code = "DUPLICATE_MESSAGE"
	payloadTooLarge    code = "PAYLOAD_TOO_LARGE"
	rateLimited        code = "RATE_LIMITED"
	policyDenied       code = "POLICY_DENIED"
	unknownPolicy      code = "UNKNOWN_POLICY_VERSION"
	invalidPolicy      code = "INVALID_POLICY_DEFINITION"
	internalError      code = "INTERNAL_ERROR"
)

// statuses are gRPC's for MACP's codes; all others are FAILED_PRECONDITION.
var statuses = map[code]codes.Code{
	invalidEnvelope: codes.InvalidArgument, invalidRequest: codes.InvalidArgument, invalidSessionID: codes.InvalidArgument,
	invalidPolicy: codes.InvalidArgument, modeNotSupported: codes.InvalidArgument, sessionExists: codes.AlreadyExists,
	sessionNotFound: codes.NotFound, forbidden: codes.PermissionDenied, unauthenticated: codes.Unauthenticated,
	payloadTooLarge: codes.ResourceExhausted, rateLimited: codes.ResourceExhausted, internalError: codes.Unavailable,
}

// A problem is a refusal of this gateway.
type problem struct {
	code code
	why  string
}

func (p problem) Error() string { return string(p.code) + ": " + p.why }

// refusals are MACP's codes for the protocol's; the rules of a mode have their own.
var refusals = map[session.Code]code{
	session.MalformedEnvelope: invalidEnvelope, session.VersionUnsupported: unsupportedVersion, session.UnknownPerformative: invalidEnvelope,
	session.StaleTimestamp: invalidEnvelope, session.SignatureInvalid: unauthenticated, session.Unauthorized: forbidden,
	session.AuthorityExceeded: policyDenied, session.OwnProposal: forbidden, session.UnknownSession: sessionNotFound,
	session.UnknownAgent: invalidEnvelope, session.WrongState: sessionNotOpen, session.WrongTurn: invalidEnvelope,
	session.Duplicate: duplicateMessage, session.ChainConflict: internalError, session.ProposalUnknown: invalidEnvelope,
	session.ProposalNotOpen: invalidEnvelope, session.ClarificationPending: invalidEnvelope, session.EscalationResolved: sessionNotOpen,
	session.TooLarge: payloadTooLarge, session.SchemaInvalid: invalidEnvelope, session.SchemaUnsupported: invalidEnvelope,
	session.ModeViolation: invalidEnvelope, session.SessionEscalated: sessionNotOpen, session.InsufficientTrust: forbidden,
	session.RateLimited: rateLimited, session.Unavailable: internalError,
}

// rules are MACP's codes for what convergent/1 refuses.
var rules = map[string]code{
	"not_initiator": forbidden, "coordinator": forbidden, "ccc": forbidden, "version_mismatch": unknownPolicy, "max_rounds": policyDenied,
}

// problem says in MACP's words why something failed; offer is the id that it would have given
// to a proposal or a commitment.
func (g *Gateway) problem(err error, offer string) problem {
	own, is := errors.AsType[problem](err)
	refusal, protocol := errors.AsType[*session.Refusal](err)
	switch {
	case is:
		return own
	case err == custody.ErrToken: //nolint:errorlint // it comes as it is
		return problem{unauthenticated, inWords(refusal.Message)}
	case !protocol:
		g.o.Service.Fault("macp", err)
		return problem{internalError, "the broker cannot say now; send it again"}
	}
	p := problem{refusals[refusal.Code], inWords(refusal.Message)}
	var details struct {
		Rule     string `json:"rule"`
		ID       string `json:"id"`
		State    string `json:"state"`
		Proposal string `json:"proposalId"`
	}
	if data, err := json.Marshal(refusal.Details); err != nil || json.Unmarshal(data, &details) != nil {
		return p // its details are a list, of a schema's faults
	}
	if named, has := rules[details.Rule]; has && refusal.Code == session.ModeViolation {
		p.code = named
	}
	if refusal.Code == session.WrongState && (details.State == session.Introduced.String() || details.State == session.Conversing.String()) {
		p.code = invalidEnvelope // it is open, and something else is allowed
	}
	if refusal.Code == session.Duplicate && (details.Proposal != "" || details.ID == offer && offer != "") {
		p.code = invalidEnvelope
	}
	return p
}

// words are MACP's for those of refusals: acts, states, ids and parameters.
var words = strings.NewReplacer(
	"PROPOSE", "Proposal", "COUNTER", "CounterProposal", "ACCEPT", "Accept", "REJECT", "Reject", "WITHDRAW", "Withdraw",
	"COMMIT", "Commitment", "CLOSED", "CANCELLED", "CLOSE", "CancelSession",
	"INTRODUCED", "OPEN", "INVITED", "OPEN: not all participants have joined", "CONVERSING", "OPEN", "AGREEING", "OPEN",
	"EXECUTING", "RESOLVED", "ESCALATED", "SUSPENDED", "FAILED", "EXPIRED",
	"session-invitation", "SessionStart", "invitation", "SessionStart",
	"proposalId", "proposal_id", "referenceId", "proposal_id", "commitmentId", "commitment_id", "messageId", "message_id", "Idempotency-Key", "message_id",
	"sessionId", "session_id", "maxDuration", "ttl_ms", "modeVersion", "mode_version", "policyVersion", "policy_version",
	"authorityScope", "authority_scope", "convergent/1", modeURI,
)

// unknown are acts that MACP has no message for, where a refusal lists what is allowed.
var unknown = regexp.MustCompile(`, (?:INFORM|QUERY|CLARIFY|OBSERVE|DELEGATE|ESCALATE)\b|\b(?:INFORM|QUERY|CLARIFY|OBSERVE|DELEGATE|ESCALATE), `)

// inWords is a refusal's sentence in MACP's words. What is quoted, such as an id, stays.
func inWords(why string) string {
	parts := strings.Split(unknown.ReplaceAllString(why, ""), `"`)
	for i := 0; i < len(parts); i += 2 {
		parts[i] = words.Replace(parts[i])
	}
	return strings.Join(parts, `"`)
}

// status is a problem as gRPC's status, with MACP's code in the trailer.
func (g *Gateway) status(ctx context.Context, err error) error {
	p := g.problem(err, "")
	grpc.SetTrailer(ctx, trailer(p.code)) //nolint:errcheck // of a call, which has one
	grade, has := statuses[p.code]
	if !has {
		grade = codes.FailedPrecondition
	}
	return status.Error(grade, p.Error())
}

// denied are the details of POLICY_DENIED.
type denied struct {
	Reasons []string `json:"reasons"`
	Denials []denial `json:"denials"`
}

type denial struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// message is a problem as MACP's error about an envelope.
func (p problem) message(e *pb.Envelope) *pb.MACPError {
	m := &pb.MACPError{Code: string(p.code), Message: p.why, SessionId: e.GetSessionId(), MessageId: e.GetMessageId()}
	if p.code == policyDenied {
		if details, err := json.Marshal(denied{[]string{p.why}, []denial{{"unspecified", p.why}}}, json.Deterministic(true)); err == nil {
			m.Details = details
		}
	}
	return m
}
