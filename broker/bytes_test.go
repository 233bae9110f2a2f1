package broker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
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

// A quota of bytes refills within a minute, says what is left of it and when there is
// room, and is one principal's; that of an organisation is for its principals together.
func TestByteQuotas(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	var clock manual
	admit, copies, _ := broker.Limiter(broker.Limits{PrincipalBytes: 600 * kib, OrganisationBytes: 1000 * kib}, clock.now)
	other := performatives.Agent("agent://acme.com/other")
	send := func(a performatives.Agent, size int) error {
		release, err := admit(a, size)
		if err == nil {
			release()
		}
		return err
	}
	testkit.Must(t, send(alpha, 500*kib))
	err := send(alpha, 200*kib)
	if left := bytesLeft(t, err, session.RateLimited, 600*kib); left != 100*kib {
		t.Errorf("%d bytes are left", left)
	}
	again := time.Duration(limitedBy(t, err, "bytes")) * time.Millisecond
	testkit.Must(t, send(alpha, 90*kib)) // a smaller one has room
	testkit.Must(t, send(other, 390*kib))
	err = send(other, 100*kib)
	bytesLeft(t, err, session.RateLimited, 1000*kib)
	limitedBy(t, err, "organisationBytes")
	testkit.Must(t, send(beta, 600*kib))
	clock.passes(again + 10*time.Second)
	testkit.Must(t, send(alpha, 200*kib))
	// Small copies are free of charge, large ones are not.
	clock.passes(time.Minute)
	copies(alpha, 4*kib, 1000)
	testkit.Must(t, send(alpha, 0))
	copies(alpha, 250*kib, 1000)
	copies(alpha, 250*kib, 1000)
	copies(alpha, 250*kib, 1000)
	wait := time.Duration(limitedBy(t, send(alpha, kib), "bytes")) * time.Millisecond
	if wait > 2*time.Minute {
		t.Errorf("it owes %s", wait)
	}
	clock.passes(wait)
	testkit.Must(t, send(alpha, kib))
}

// A session has so many bytes. Who has filled it is told what is left, may still end it,
// and harms no other session. A restart counts the same.
func TestSessionBytes(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	l := limits(t, broker.Limits{SessionBytes: most})
	id, other := newID(), newID()
	for _, s := range []performatives.SessionID{id, other} {
		l.heard(l.says(s, alpha, "PROPOSE", invitation(beta)))
		l.heard(l.says(s, beta, "ACCEPT", `{"referenceId":"inv"}`))
	}
	offer := func(n, size int) error {
		return l.says(id, alpha, "PROPOSE", fmt.Sprintf(`{"proposalId":"p%d","type":"x","subject":"x","terms":{"n":%d,"x":%q}}`, n, n, strings.Repeat("x", size)))
	}
	l.heard(offer(1, 20_000))
	l.heard(offer(2, 20_000))
	left := bytesLeft(t, offer(3, 30_000), session.TooLarge, most)
	l.Down()
	l.Up()
	l.nc = l.Plain()
	if again := bytesLeft(t, offer(3, 30_000), session.TooLarge, most); again != left || left < 15_000 || left > 25_000 {
		t.Errorf("%d and then %d bytes are left of %d", left, again, most)
	}
	l.heard(l.says(id, beta, "ACCEPT", `{"referenceId":"p1"}`)) // there is room for it
	l.heard(offer(4, left-4000))
	bytesLeft(t, l.says(id, beta, "OBSERVE", fmt.Sprintf(`{"subject":%q}`, strings.Repeat("x", 5000))), session.TooLarge, most)
	l.heard(l.says(other, alpha, "OBSERVE", `{"subject":"x"}`))
	l.heard(l.says(id, beta, "CLOSE", fmt.Sprintf(`{"outcome":"failed","summary":%q}`, strings.Repeat("x", 5000))))
}

// A human's decision is heard in a full session: the pause would not end otherwise.
func TestRulingInFullSession(t *testing.T) {
	t.Parallel()
	const most = 24 << 10
	l := limits(t, broker.Limits{SessionBytes: most})
	id := newID()
	l.heard(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.heard(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	l.heard(l.says(id, alpha, "PROPOSE", fmt.Sprintf(`{"proposalId":"p","type":"x","subject":"x","terms":{"x":%q}}`, strings.Repeat("x", 15_000))))
	l.heard(l.says(id, alpha, "ESCALATE", `{"reason":"policy-ambiguous","urgency":"low","context":"x"}`))
	var view api.SessionView
	l.reads(api.SessionGet.Name, `{"sessionId":"`+string(id)+`"}`, &view)
	ruling := func(escalation, comment string) error {
		return l.says(id, "human://acme.com/alice", "INFORM", fmt.Sprintf(`{"type":"resolution","data":{"escalationId":%q,"decision":"guidance","comment":%q}}`, escalation, comment))
	}
	l.heard(ruling(string(view.Escalation.ID), strings.Repeat("x", 8000)))
	bytesLeft(t, l.says(id, beta, "OBSERVE", fmt.Sprintf(`{"subject":%q}`, strings.Repeat("x", 8000))), session.TooLarge, most)
}
