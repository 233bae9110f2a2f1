package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const counsel = performatives.Agent("agent://law.example/counsel")

// forbids gives an agent a card with a Confidentiality and Compliance Context.
func (l line) forbids(a performatives.Agent, members string) {
	l.Helper()
	_, err := l.Server.Broker.Parts.Registry.Add(l.Context(), api.Card{Agent: a, CCC: jsontext.Value(`{"ccc_version":"1.0","scope_id":"s",` + members + `}`)})
	testkit.Must(l, err)
}

// seen is what an agent sees of a session.
func (l line) seen(a performatives.Agent, id performatives.SessionID) (v api.SessionView) {
	l.Helper()
	m, err := testkit.Request(l.nc, api.Call(a, api.SessionGet.Name), []byte(`{"sessionId":"`+string(id)+`"}`))
	testkit.Must(l, err)
	if err := json.Unmarshal(m.Data, &v); err != nil || v.State == session.Idle {
		l.Fatalf("%s sees %s, %v", a, m.Data, err)
	}
	return v
}

func (l line) barred(err error) {
	l.Helper()
	l.refused(err, session.ModeViolation)
	refusal, _ := errors.AsType[*session.Refusal](err)
	if details, _ := refusal.Details.(jsontext.Value); string(details) != `{"rule":"ccc"}` {
		l.Errorf("the refusal says %s", details)
	}
}

// GATEWAYS.md G4, "CCC": who invites two that bar each other has what it has of two that do
// not: the invitation stands, the one that may not accept declines in its own time, and neither
// the inviter nor the other invitee learns more.
func TestWallBetweenInvitees(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	for what, members := range map[string]string{
		"an embargo": `"embargo_list":["did:web:widgets.co"]`,
		"a wall":     `"chinese_walls":[{"between":["did:web:law.example","did:web:widgets.co"],"reason":"conflict"}]`,
	} {
		l.forbids(counsel, members)
		for _, order := range [][]performatives.Agent{{counsel, beta}, {beta, counsel}} {
			walled, free := newID(), newID()
			l.accepted(l.says(walled, alpha, "PROPOSE", invitation(order...)))
			l.accepted(l.says(free, alpha, "PROPOSE", invitation(counsel, gamma)))
			l.barred(l.says(walled, counsel, "ACCEPT", `{"referenceId":"inv"}`))
			l.accepted(l.says(free, counsel, "ACCEPT", `{"referenceId":"inv"}`))
			l.accepted(l.says(walled, beta, "ACCEPT", `{"referenceId":"inv"}`))
			for _, a := range []performatives.Agent{alpha, beta} {
				if v := l.seen(a, walled); v.State != session.Invited || v.Head.Next.Sequence != 2 {
					t.Errorf("%s: %s sees %s with %d entries", what, a, v.State, v.Head.Next.Sequence)
				}
			}
			l.accepted(l.says(walled, counsel, "REJECT", `{"referenceId":"inv","code":"capacity_unavailable","reason":"busy","retryable":false}`))
			if v := l.seen(alpha, walled); v.State != session.Failed {
				t.Errorf("%s: after the decline the inviter sees %s", what, v.State)
			}
		}
		// Of the inviter itself it learns at once, and its own context is its own.
		l.barred(l.says(newID(), beta, "PROPOSE", invitation(counsel)))
		l.barred(l.says(newID(), counsel, "PROPOSE", invitation(gamma, beta)))
		l.accepted(l.says(newID(), counsel, "PROPOSE", invitation(gamma)))
	}
}

// A category that an NDA of the invitee covers shows to the inviter as little; nor does a
// COUNTER carry the invitee into it, or the inviter into one of its own.
func TestCategoryBehindAWall(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	day := time.Now().UTC().Format(time.DateOnly)
	nda := fmt.Sprintf(`"active_ndas":[{"id":"nda_1","jurisdiction":"DE","document_hash":"sha256:0000000000000000000000000000000000000000000000000000000000000000","counterparties":["did:web:client.io"],"type":"mutual","covered_categories":["pricing"],"valid_from":%q,"valid_until":"2999-01-01"}]`, day)
	l.forbids(counsel, nda)
	about := func(category string) string {
		return fmt.Sprintf(`{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"mode":"binding/1","participants":[%q],"policy":{"categories":[%q]}}}`, counsel, category)
	}
	counter := func(id, of, category string) string {
		return fmt.Sprintf(`{"proposalId":%q,"referenceId":%q,"terms":{"mode":"binding/1","policy":{"categories":[%q]}}}`, id, of, category)
	}
	secret, open := newID(), newID()
	l.accepted(l.says(secret, alpha, "PROPOSE", about("pricing")))
	l.accepted(l.says(open, alpha, "PROPOSE", about("hosting")))
	if a, b := l.seen(alpha, secret), l.seen(alpha, open); a.State != b.State || a.Head.Next.Sequence != b.Head.Next.Sequence {
		t.Errorf("the inviter sees %s and %s", a.State, b.State)
	}
	l.barred(l.says(secret, counsel, "ACCEPT", `{"referenceId":"inv"}`))
	l.barred(l.says(open, counsel, "COUNTER", counter("again", "inv", "pricing")))
	l.accepted(l.says(secret, counsel, "COUNTER", counter("again", "inv", "hosting")))
	l.accepted(l.says(secret, alpha, "ACCEPT", `{"referenceId":"again"}`))
	l.accepted(l.says(open, counsel, "ACCEPT", `{"referenceId":"inv"}`))

	own := newID()
	l.barred(l.says(own, counsel, "PROPOSE", fmt.Sprintf(`{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"mode":"binding/1","participants":[%q],"policy":{"categories":["pricing"]}}}`, alpha)))
	l.accepted(l.says(own, counsel, "PROPOSE", fmt.Sprintf(`{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"mode":"binding/1","participants":[%q]}}`, alpha)))
	l.accepted(l.says(own, alpha, "COUNTER", counter("other", "inv", "pricing")))
	l.barred(l.says(own, counsel, "ACCEPT", `{"referenceId":"other"}`))
	for _, id := range []performatives.SessionID{secret, open, own} {
		m, err := testkit.Request(l.nc, api.OperatorCall(api.SessionMessages.Name), []byte(`{"sessionId":"`+string(id)+`"}`))
		testkit.Must(t, err)
		if containsAny(m.Data, "client.io", "active_ndas") {
			t.Errorf("the transcript says %s", m.Data)
		}
	}
}

func containsAny(data []byte, all ...string) bool {
	return slices.ContainsFunc(all, func(s string) bool { return bytes.Contains(data, []byte(s)) })
}
