package session_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// PROTOCOL.md §9, the closed set of codes with their HTTP status.
func TestCodes(t *testing.T) {
	statuses := map[session.Code]int{
		"malformed": 400, "version_unsupported": 400, "unknown_performative": 400, "stale_timestamp": 400, "signature_invalid": 401,
		"unauthorized": 403, "authority_exceeded": 403, "own_proposal": 403, "unknown_session": 404, "unknown_agent": 404,
		"wrong_state": 409, "wrong_turn": 409, "duplicate": 409, "chain_conflict": 409, "proposal_unknown": 409, "proposal_not_open": 409,
		"clarification_pending": 409, "escalation_resolved": 409, "too_large": 413, "schema_invalid": 422, "schema_unsupported": 422,
		"mode_violation": 422, "session_escalated": 423, "insufficient_trust_score": 403, "rate_limited": 429, "unavailable": 503,
	}
	categories := []session.Category{
		session.CategoryProtocol, session.CategorySchema, session.CategoryAuthority, session.CategoryIntegrity,
		session.CategoryTemporal, session.CategoryTrust, session.CategoryLimit, session.CategoryInternal,
	}
	for code, status := range statuses {
		if got := code.Status(); got != status {
			t.Errorf("%s is %d, want %d", code, got, status)
		}
		if !slices.Contains(categories, code.Category()) {
			t.Errorf("%s has the category %q", code, code.Category())
		}
	}
	for _, code := range session.Codes() {
		if statuses[code] == 0 {
			t.Errorf("%s is none of the protocol's codes", code)
		}
	}
	if got, want := len(session.Codes()), len(statuses); got != want {
		t.Errorf("%d codes, want %d", got, want)
	}
}

// PROTOCOL.md §9: what is retryable may be accepted later as it is. What names a head that is over never is.
func TestRetryable(t *testing.T) {
	later := []session.Code{"stale_timestamp", "wrong_turn", "clarification_pending", "session_escalated", "rate_limited", "unavailable"}
	for _, code := range session.Codes() {
		if code.Retryable() != slices.Contains(later, code) {
			t.Errorf("%s is retryable: %t", code, code.Retryable())
		}
	}
}

// PROTOCOL.md §3: a copy is looked for after the checks that need no session, which these may come from.
func TestJudged(t *testing.T) {
	early := []session.Code{
		"malformed", "version_unsupported", "unknown_performative", "signature_invalid", "unauthorized", "unknown_agent", "too_large",
		"rate_limited", "unavailable",
	}
	for _, code := range session.Codes() {
		if code.Judged() == slices.Contains(early, code) {
			t.Errorf("%s is judged: %t", code, code.Judged())
		}
	}
	if session.Code("of a later version").Judged() {
		t.Error("a code that is not known says that the message was not accepted")
	}
}

// PROTOCOL.md §9: unknown_session is byte for byte the same for a session that
// does not exist and one in which the caller has no part, whatever it says.
func TestNonParticipantsLearnNothing(t *testing.T) {
	said := []string{"OBSERVE", "ACCEPT i1", "CLOSE", "OBSERVE link=7", `PROPOSE p1 {"price":1}`, "rules e1 approved", "WITHDRAW d1"}
	var answers []string
	ask := func(c *conversation, who string) {
		for _, line := range said {
			a, err := c.read(who + " " + line)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.submit(c.envelope(a.draft))
			var r *session.Refusal
			if !errors.As(err, &r) {
				t.Fatalf("%s %s: %v", who, line, err)
			}
			answers = append(answers, string(r.Code)+r.Message+jsonOf(r.Details))
		}
	}
	none := newConversation(t, cells{})
	ask(none, "gamma")
	some := newConversation(t, cells{})
	for _, line := range []string{
		"alpha invite i1 -> beta", "beta ACCEPT i1", "alpha OBSERVE", "beta DELEGATE d1 delia full", "delia REJECT d1", "alpha ESCALATE e1 high",
	} {
		if _, err := some.perform(line, strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
	}
	for _, who := range []string{"gamma", "bob", "carol", "delia", "ghost"} {
		ask(some, who)
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(answers))); len(distinct) != 1 {
		t.Errorf("non-participants can tell sessions apart:\n%s", strings.Join(distinct, "\n"))
	}
}

// An older State stays as it was, whatever becomes of newer ones.
func TestStatesAreValues(t *testing.T) {
	c := newConversation(t, cells{})
	var states []session.State
	for _, line := range []string{
		"alpha invite i1 -> beta", "beta ACCEPT i1", `alpha PROPOSE p1 {"price":1}`, "beta CLARIFY c1 p1 terms.price", "beta DELEGATE d1 delia full",
		"alpha answers p1 terms.price", "delia ACCEPT p1", "alpha COMMIT k1 p1", "beta ESCALATE e1 high", "bob rules e1 approved", "beta ACCEPT k1", "alpha CLOSE",
	} {
		if got, err := c.perform(line, strings.Fields(line)); err != nil || !strings.HasPrefix(got[0], "accepted") {
			t.Fatal(line, got, err)
		}
		states = append(states, c.state)
	}
	for i, state := range states {
		if got := viewOf(state, c.now); got != c.views[i] {
			t.Errorf("the state after entry %d has changed since", i)
		}
	}
}

// A broker enters nothing but the CLOSE of a deadline that has passed (§3).
func TestBrokersOwnEntries(t *testing.T) {
	c := newConversation(t, cells{})
	if got, err := c.perform("alpha invite i1 -> beta", strings.Fields("alpha invite i1 -> beta")); err != nil {
		t.Fatal(got, err)
	}
	for name, body := range map[string]performatives.Body{
		"a deadline that has not passed": &performatives.CloseBody{Outcome: performatives.FailedEnd, Reason: session.InvitationTimeout},
		"no deadline at all":             &performatives.CloseBody{Outcome: performatives.FailedEnd},
		"an act of a party":              &performatives.AcceptBody{ReferenceID: "i1"},
	} {
		m, err := performatives.Read(c.envelope(performatives.Draft{Sender: performatives.BrokerAgent(broker.Key()), Body: body}))
		if err == nil {
			err = m.DecodeBody()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.Step(c.state, session.Event{Message: m, At: c.now}); refusal(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := session.Step(session.New(sessionID, nil), session.Event{Message: m, At: c.now}); refusal(err) == "" {
			t.Errorf("%s, in no session: %v", name, err)
		}
	}
}
