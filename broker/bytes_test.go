package broker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// bytesLeft insists that a refusal tells a quota and what is left of it.
func bytesLeft(t *testing.T, err error, code session.Code, most int) (left int) {
	t.Helper()
	refusal, ok := errors.AsType[*session.Refusal](err)
	if !ok || refusal.Code != code {
		t.Fatalf("%v, want %s", err, code)
	}
	raw, err := json.Marshal(refusal.Details)
	testkit.Must(t, err)
	var d struct{ MaxBytes, BytesLeft *int }
	testkit.Must(t, json.Unmarshal(raw, &d))
	if d.MaxBytes == nil || *d.MaxBytes != most || d.BytesLeft == nil {
		t.Fatalf("details %s, want maxBytes %d and bytesLeft", raw, most)
	}
	return *d.BytesLeft
}

// A session has so many bytes. Who has filled it is told what is left, may still end it,
// and harms no other session. A restart counts the same.
func TestSessionBytes(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	l := limited(t, limits.Limits{SessionBytes: most})
	id, other := newID(), newID()
	for _, s := range []performatives.SessionID{id, other} {
		l.accepted(l.says(s, alpha, "PROPOSE", invitation(beta)))
		l.accepted(l.says(s, beta, "ACCEPT", `{"referenceId":"inv"}`))
	}
	offer := func(n, size int) error {
		return l.says(id, alpha, "PROPOSE", fmt.Sprintf(`{"proposalId":"p%d","type":"x","subject":"x%d","terms":{"n":%d,"x":%q}}`, n, n, n, strings.Repeat("x", size)))
	}
	l.accepted(offer(1, 20_000))
	l.accepted(offer(2, 20_000))
	left := bytesLeft(t, offer(3, 30_000), session.TooLarge, most)
	l.Down()
	l.Up()
	l.nc = l.Plain()
	if again := bytesLeft(t, offer(3, 30_000), session.TooLarge, most); again != left || left < 15_000 || left > 25_000 {
		t.Errorf("%d and then %d bytes are left of %d", left, again, most)
	}
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"p1"}`)) // there is room for it
	l.accepted(offer(4, left-4000))
	bytesLeft(t, l.says(id, beta, "OBSERVE", fmt.Sprintf(`{"subject":%q}`, strings.Repeat("x", 5000))), session.TooLarge, most)
	l.accepted(l.says(other, alpha, "OBSERVE", `{"subject":"x"}`))
	l.accepted(l.says(id, beta, "CLOSE", fmt.Sprintf(`{"outcome":"failed","summary":%q}`, strings.Repeat("x", 5000))))
}

// A human's decision is accepted in a full session: the pause would not end otherwise.
func TestRulingInFullSession(t *testing.T) {
	t.Parallel()
	const most = 24 << 10
	l := limited(t, limits.Limits{SessionBytes: most})
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	l.accepted(l.says(id, alpha, "PROPOSE", fmt.Sprintf(`{"proposalId":"p","type":"x","subject":"x","terms":{"x":%q}}`, strings.Repeat("x", 15_000))))
	l.accepted(l.says(id, alpha, "ESCALATE", `{"reason":"policy-ambiguous","urgency":"low","context":"x"}`))
	var view api.SessionView
	l.reads(api.SessionGet.Name, `{"sessionId":"`+string(id)+`"}`, &view)
	ruling := func(escalation, comment string) error {
		return l.says(id, "human://acme.com/alice", "INFORM", fmt.Sprintf(`{"type":"resolution","data":{"escalationId":%q,"decision":"guidance","comment":%q}}`, escalation, comment))
	}
	l.accepted(ruling(string(view.Escalation.ID), strings.Repeat("x", 8000)))
	bytesLeft(t, l.says(id, beta, "OBSERVE", fmt.Sprintf(`{"subject":%q}`, strings.Repeat("x", 8000))), session.TooLarge, most)
}
