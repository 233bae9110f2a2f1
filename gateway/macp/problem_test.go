package macpgateway

import (
	"errors"
	"testing"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/session"
)

// Each code of PROTOCOL.md §9 is one of MACP's.
func TestCodes(t *testing.T) {
	t.Parallel()
	for _, c := range session.Codes() {
		if refusals[c] == "" {
			t.Errorf("%s has no code in MACP", c)
		}
	}
	if len(refusals) != len(session.Codes()) {
		t.Errorf("there are codes for %d refusals; there are %d", len(refusals), len(session.Codes()))
	}
}

// What a refusal is about decides where its code says too little.
func TestProblems(t *testing.T) {
	t.Parallel()
	g := New(Options{Service: &gateway.Service{Log: zap.NewNop()}})
	refuse := func(c session.Code, details any) error { return session.Refuse(c, "why").With(details) }
	for _, test := range []struct {
		err  error
		want code
	}{
		{custody.ErrToken, unauthenticated},
		{errors.New("disk"), internalError},
		{noPart, forbidden},
		{refuse(session.ModeViolation, map[string]string{"rule": "max_rounds"}), policyDenied},
		{refuse(session.ModeViolation, map[string]string{"rule": "not_converged"}), invalidEnvelope},
		{refuse(session.SchemaInvalid, []string{"a list"}), invalidEnvelope},
		{refuse(session.WrongState, map[string]string{"state": "INTRODUCED"}), invalidEnvelope},
		{refuse(session.WrongState, map[string]string{"state": "CLOSED"}), sessionNotOpen},
		{refuse(session.Duplicate, map[string]string{"id": "p1"}), invalidEnvelope},
		{refuse(session.Duplicate, map[string]string{"proposalId": "p0"}), invalidEnvelope},
		{refuse(session.Duplicate, map[string]string{"id": "a message"}), duplicateMessage},
		{refuse(session.Duplicate, nil), duplicateMessage},
	} {
		if p := g.problem(test.err, "p1"); p.code != test.want || p.why == "" {
			t.Errorf("%v is %v, want %s", test.err, p, test.want)
		}
	}
	for why, want := range map[string]string{
		"PROPOSE is not allowed while EXECUTING. Allowed for you: INFORM, QUERY, CLARIFY, DELEGATE, ESCALATE, OBSERVE, CLOSE.": "Proposal is not allowed while RESOLVED. Allowed for you: CancelSession.",
		`"COUNTER" is not open: it is countered`:                                      `"COUNTER" is not open: it is countered`,
		`a COMMIT on "p1" needs it accepted`:                                          `a Commitment on "p1" needs it accepted`,
		"COUNTER while CONVERSING. Allowed for you: PROPOSE, QUERY, ACCEPT, OBSERVE.": "CounterProposal while OPEN. Allowed for you: Proposal, Accept.",
	} {
		if p := g.problem(session.Refuse(session.WrongState, "%s", why), ""); p.why != want {
			t.Errorf("%q is %q, want %q", why, p.why, want)
		}
	}
	if p := g.problem(errors.New("disk 7 is full"), ""); p.why == "disk 7 is full" {
		t.Error("an internal cause leaks")
	}
}
