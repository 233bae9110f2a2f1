package macpgateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/proto"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/performatives"
)

// What MACP calls its version, the mode and the mode's messages.
const (
	version      = "1.0"
	modeURI      = "macp.mode.proposal.v1"
	modeVersion  = "1.0.0"
	configDef    = "config.default"
	start        = "SessionStart"
	proposal     = "Proposal"
	counter      = "CounterProposal"
	accept       = "Accept"
	reject       = "Reject"
	withdraw     = "Withdraw"
	commitment   = "Commitment"
	mode         = "convergent/1"
	convergent   = "1"          // its version, as COMMIT names it
	invitation   = "invitation" // the invitation's proposalId
	offerType    = "macp.proposal"
	noReason     = "unspecified"
	longestTTL   = 24 * 60 * 60 * 1000 // ms
	mostParties  = 1000
	contextEntry = "macp" // the member of a context entry that has MACP's envelope
)

var messageTypes = []string{start, proposal, counter, accept, reject, withdraw, commitment}

// An act is what a message says, without MACP's own bytes.
type act struct {
	performative performatives.Performative
	body         map[string]any
	offer        string // the id that it gives to a proposal or a commitment
}

func invalid(format string, args ...any) error {
	return problem{invalidEnvelope, fmt.Sprintf(format, args...)}
}

// read reads a payload.
func read[M proto.Message](payload []byte, m M) (M, error) {
	if err := proto.Unmarshal(payload, m); err != nil {
		return m, invalid("the payload is not a %s", m.ProtoReflect().Descriptor().Name())
	}
	return m, nil
}

// actOf is the act that a message of a session which is open says. A commitment refers to
// the proposal that all have accepted.
func actOf(e *pb.Envelope, accepted string) (a act, err error) {
	switch e.GetMessageType() {
	case proposal:
		p, err := read(e.GetPayload(), &pb.ProposalPayload{})
		return act{performatives.Propose, map[string]any{
			"proposalId": p.GetProposalId(), "type": offerType, "subject": subject(p.GetTitle(), p.GetProposalId()),
			"terms": terms(p.GetTitle(), p.GetSummary(), p.GetDetails(), p.GetTags()),
		}, p.GetProposalId()}, err
	case counter:
		p, err := read(e.GetPayload(), &pb.CounterProposalPayload{})
		return act{performatives.Counter, map[string]any{
			"proposalId": p.GetProposalId(), "referenceId": p.GetSupersedesProposalId(), "subject": subject(p.GetTitle(), p.GetProposalId()),
			"terms": terms(p.GetTitle(), p.GetSummary(), p.GetDetails(), nil),
		}, p.GetProposalId()}, err
	case accept:
		p, err := read(e.GetPayload(), &pb.AcceptPayload{})
		return act{performative: performatives.Accept, body: reasoned(p.GetProposalId(), p.GetReason())}, err
	case withdraw:
		p, err := read(e.GetPayload(), &pb.WithdrawPayload{})
		return act{performative: performatives.Withdraw, body: reasoned(p.GetProposalId(), p.GetReason())}, err
	case reject:
		p, err := read(e.GetPayload(), &pb.RejectPayload{})
		a = act{performative: performatives.Reject, body: reasoned(p.GetProposalId(), p.GetReason())}
		if p.GetReason() == "" {
			a.body["reason"] = noReason
		}
		a.body["code"], a.body["retryable"] = noReason, !p.GetTerminal()
		if p.GetTerminal() {
			a.body["terminal"] = true
		}
		return a, err
	case commitment:
		p, err := read(e.GetPayload(), &pb.CommitmentPayload{})
		if err != nil {
			return a, err
		}
		return commit(p, accepted)
	}
	return a, invalid("%.64q is no message of %s while the session is open", e.GetMessageType(), modeURI)
}

func reasoned(reference, reason string) map[string]any {
	body := map[string]any{"referenceId": reference}
	if reason != "" {
		body["reason"] = reason
	}
	return body
}

func subject(title, id string) string {
	if strings.TrimSpace(title) == "" {
		return id
	}
	return title
}

// terms are a proposal's. Details that are JSON can be read, and bounded, as such.
func terms(title, summary string, details []byte, tags []string) map[string]any {
	t := map[string]any{"title": title}
	if summary != "" {
		t["summary"] = summary
	}
	if len(tags) > 0 {
		t["tags"] = tags
	}
	if len(details) == 0 {
		return t
	}
	canonical, err := performatives.Canonical(details)
	switch {
	case err == nil && strings.IndexByte(`{["`, canonical[0]) >= 0:
		t["details"] = canonical
	case utf8.Valid(details):
		t["details"] = string(details)
	default:
		t["details"] = map[string]any{"base64": base64.StdEncoding.EncodeToString(details)}
	}
	return t
}

// legible refuses an offer with details that other clients may read as JSON, and parley does not, for a key is there
// twice or a number has more digits than all readers keep: no limit would hold for what they say.
func legible(e *pb.Envelope) error {
	var details []byte
	switch e.GetMessageType() {
	case proposal:
		p, _ := read(e.GetPayload(), &pb.ProposalPayload{}) // it was read before
		details = p.GetDetails()
	case counter:
		p, _ := read(e.GetPayload(), &pb.CounterProposalPayload{}) // the same
		details = p.GetDetails()
	}
	if _, err := performatives.Canonical(details); err != nil && readAsJSON(details) {
		return invalid("the details are JSON that not everybody reads alike: %v", err)
	}
	return nil
}

// notNumbers are what Python's reader takes for numbers, and JSON does not have.
var notNumbers = regexp.MustCompile(`-?\b(NaN|Infinity)\b`)

// readAsJSON reports whether lenient readers take bytes for an object or a list: they skip a mark at the beginning, read
// UTF-16 and UTF-32, and allow a key twice, NaN, and anything behind an object.
func readAsJSON(data []byte) bool {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	begins := slices.IndexFunc(data, func(b byte) bool { return strings.IndexByte("\x00 \t\r\n\xfe\xff", b) < 0 })
	if begins < 0 || data[begins] != '{' && data[begins] != '[' {
		return false
	}
	if begins > 0 && data[begins-1] == 0 || begins+1 < len(data) && data[begins+1] == 0 {
		return true // it is not UTF-8
	}
	read := jsontext.NewDecoder(bytes.NewReader(notNumbers.ReplaceAll(data, []byte("0"))), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	value, err := read.ReadValue()
	if err != nil {
		return false
	}
	object := value.Kind() == '{'
	_, err = read.ReadValue()
	return object || errors.Is(err, io.EOF)
}

// commit is the act of a commitment.
func commit(p *pb.CommitmentPayload, accepted string) (a act, err error) {
	for _, required := range []string{p.GetCommitmentId(), p.GetAction(), p.GetAuthorityScope(), p.GetReason()} {
		if strings.TrimSpace(required) == "" {
			return a, invalid("a commitment has commitment_id, action, authority_scope and reason")
		}
	}
	body := map[string]any{
		"commitmentId": p.GetCommitmentId(), "action": p.GetAction(), "authorityScope": p.GetAuthorityScope(), "reason": p.GetReason(),
		"modeVersion": convergent, "outcome": "rejected",
	}
	if p.GetOutcomePositive() {
		body["outcome"] = "agreed"
		if accepted != "" {
			body["referenceId"] = accepted
		}
	}
	if p.GetPolicyVersion() != "" {
		body["policyVersion"] = p.GetPolicyVersion()
	}
	return act{performatives.Commit, body, p.GetCommitmentId()}, nil
}

// says is what a hosted agent says, with MACP's own bytes.
func (a act) says(e *pb.Envelope) (s api.Say, err error) {
	s.Performative = a.performative.String()
	if s.Body, err = json.Marshal(a.body, json.Deterministic(true)); err != nil {
		return s, invalid("a text in the payload is not UTF-8")
	}
	own, err := proto.MarshalOptions{Deterministic: true}.Marshal(e)
	if err != nil {
		return s, invalid("a text in the envelope is not UTF-8")
	}
	entry, err := json.Marshal(map[string]string{contextEntry: base64.StdEncoding.EncodeToString(own)})
	s.Context = []jsontext.Value{entry}
	return s, err
}

// A roster is who takes part in a session that is started.
type roster struct {
	parties []performatives.Agent // the participants, in MACP's order
	start   *pb.SessionStartPayload
}

// readStart reads a SessionStart and finds its participants.
func readStart(e *pb.Envelope, named func(string) (performatives.Agent, bool)) (r roster, err error) {
	p, err := read(e.GetPayload(), &pb.SessionStartPayload{})
	if err != nil {
		return r, err
	}
	r.start = p
	switch {
	case p.GetTtlMs() < 1 || p.GetTtlMs() > longestTTL:
		return r, invalid("ttl_ms is 1 to %d", longestTTL)
	case p.GetMaxSuspendMs() < 0:
		return r, invalid("max_suspend_ms is not negative")
	case strings.TrimSpace(p.GetModeVersion()) == "" || strings.TrimSpace(p.GetConfigurationVersion()) == "":
		return r, invalid("mode_version and configuration_version are not empty")
	case len(p.GetParticipants()) == 0 || len(p.GetParticipants()) > mostParties:
		return r, invalid("there are 1 to %d participants", mostParties)
	}
	for _, name := range p.GetParticipants() {
		a, known := named(name)
		switch {
		case !known:
			return r, invalid("the participant %.128q is not registered", name)
		case slices.Contains(r.parties, a):
			return r, invalid("the participant %.128q is there twice", name)
		}
		r.parties = append(r.parties, a)
	}
	return r, nil
}

// invites is the invitation that a SessionStart is.
func (g *Gateway) invites(ctx context.Context, c caller, e *pb.Envelope, r roster) (s api.Say, err error) {
	policy, err := g.parameters(ctx, c, r.start, r.parties)
	if err != nil {
		return s, err
	}
	given := map[string]jsontext.Value{}
	for name, value := range map[string]any{"maxDuration": r.start.GetTtlMs(), "invitationTimeoutMs": r.start.GetTtlMs(), "policy": policy} {
		if given[name], err = json.Marshal(value, json.Deterministic(true)); err != nil {
			return s, invalid("a text in the payload is not UTF-8")
		}
	}
	opening := gateway.Opening{
		With:    slices.DeleteFunc(slices.Clone(r.parties), func(a performatives.Agent) bool { return a == c.Agent }),
		Purpose: subject(r.start.GetIntent(), modeURI), Mode: mode, Terms: given,
	}
	said, err := opening.Invitation()
	if err != nil {
		return s, invalid("a text in the payload is not UTF-8")
	}
	s, err = act{performative: performatives.Propose}.says(e)
	s.Body = said.Body
	return s, err
}
