package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

const asks = `{"reason":"confidence-low","urgency":"high","context":"?"}`

// escalates returns the escalation's id.
func (l line) escalates(id performatives.SessionID, a performatives.Agent) string {
	l.Helper()
	l.accepted(l.says(id, a, "ESCALATE", asks))
	view, err := l.viewed(id)
	if err != nil || view.Escalation == nil {
		l.Fatal(view, err)
	}
	return string(view.Escalation.ID)
}

func (l line) rules(id performatives.SessionID, escalation string) {
	l.Helper()
	l.accepted(l.says(id, alice, "INFORM", `{"type":"resolution","data":{"escalationId":"`+escalation+`","decision":"guidance"}}`))
}

func (l line) viewed(id performatives.SessionID) (view api.SessionView, err error) {
	l.Helper()
	m, err := testkit.Request(l.nc, api.OperatorCall(api.SessionGet.Name), []byte(`{"sessionId":"`+string(id)+`"}`))
	if err != nil {
		return view, err
	}
	return view, json.Unmarshal(m.Data, &view)
}

// talk is a session of alpha and beta, for whom alice and a human like her decide.
func (l line) talk() performatives.SessionID {
	l.Helper()
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	return id
}

// An organisation without a human who may decide does not escalate: nobody could
// answer, and everybody would wait (PROTOCOL.md §7).
func TestNoDecider(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Sync: time.Minute})
	id := newID()
	signers := map[performatives.Agent]performatives.Signer{}
	for _, a := range []performatives.Agent{alpha, beta, alice} {
		signers[a] = signer(t, b.Register(a))
	}
	says := func(a performatives.Agent, body performatives.Body) error {
		_, err := b.Broker.Gateway.SubmitAs(t.Context(), a, id, signedEnvelope(t, id, a, signers[a], body))
		return err
	}
	escalates := &performatives.EscalateBody{Reason: "confidence-low", Urgency: "high", Context: []byte(`"?"`)}
	if err := errors.Join(
		says(alpha, &performatives.ProposeBody{
			ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "x", Terms: []byte(`{"participants":["` + string(beta) + `"]}`),
		}),
		says(beta, &performatives.AcceptBody{ReferenceID: "inv"}),
	); err != nil {
		t.Fatal(err)
	}
	refusal, ok := errors.AsType[*session.Refusal](says(beta, escalates))
	if !ok || refusal.Code != session.Unauthorized {
		t.Fatalf("%v, want unauthorized", refusal)
	}
	details, err := json.Marshal(refusal.Details)
	if err != nil || string(details) != `{"organisation":"widgets.co","rule":"no_decider"}` {
		t.Errorf("%s, %v", details, err)
	}
	if !strings.HasSuffix(refusal.Message, "parley human add human://widgets.co/NAME --may-decide") {
		t.Errorf("it names no cure: %s", refusal.Message)
	}
	if err := says(alpha, escalates); err != nil { // alice decides for acme.com
		t.Error(err)
	}
}

// Where people are to confirm what is agreed, both organisations need somebody who can: who
// takes part confirms nothing of its own. Each learns of its own lack; who invites learns
// nothing of the other (PROTOCOL.md §8).
func TestNobodyToConfirm(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Sync: time.Minute})
	signers := map[performatives.Agent]performatives.Signer{}
	says := func(id performatives.SessionID, a performatives.Agent, body performatives.Body) error {
		if _, known := signers[a]; !known {
			signers[a] = signer(t, b.Register(a))
		}
		_, err := b.Broker.Gateway.SubmitAs(t.Context(), a, id, signedEnvelope(t, id, a, signers[a], body))
		return err
	}
	invites := func(with performatives.Agent) performatives.Body {
		return &performatives.ProposeBody{
			ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "x",
			Terms: []byte(`{"mode":"bilateral/1","policy":{"confirm":true},"participants":["` + string(with) + `"]}`),
		}
	}
	lacks := func(err error, organisation string) {
		t.Helper()
		refusal, ok := errors.AsType[*session.Refusal](err)
		if !ok || refusal.Code != session.Unauthorized {
			t.Fatalf("%v, want unauthorized", err)
		}
		details, err := json.Marshal(refusal.Details)
		if err != nil || string(details) != `{"organisation":"`+organisation+`","rule":"no_decider"}` {
			t.Errorf("%s, %v", details, err)
		}
	}
	for _, a := range []performatives.Agent{alpha, beta, alice} {
		signers[a] = signer(t, b.Register(a))
	}
	accepts := &performatives.AcceptBody{ReferenceID: "inv"}
	lacks(says(newID(), beta, invites(alpha)), "widgets.co")
	alone := newID()
	testkit.Must(t, says(alone, alpha, invites(beta)))
	lacks(says(alone, beta, accepts), "widgets.co")
	bob := performatives.Agent("human://widgets.co/bob")
	signers[bob] = signer(t, b.Register(bob))
	himself := newID()
	testkit.Must(t, says(himself, alpha, invites(bob)))
	lacks(says(himself, bob, accepts), "widgets.co")
	testkit.Must(t, says(alone, beta, accepts))

	// Both have somebody: then bob is removed, and there is nothing to agree any more.
	id := newID()
	remarked := performatives.Remarks{Assessment: []byte(`{"reasoning":"it fits","suggestedRoles":{"ownUser":"peer","otherUser":"peer"}}`)}
	if err := errors.Join(
		says(id, alpha, invites(beta)),
		says(id, beta, accepts),
		says(id, alpha, &performatives.ProposeBody{ProposalID: "p1", Type: "opportunity", Subject: "x", Terms: []byte(`{}`), Remarks: remarked}),
	); err != nil {
		t.Fatal(err)
	}
	removed := make(chan error, 1)
	b.Broker.Verbs.Call(t.Context(), api.Caller{Operator: true}, api.AgentRemove.Name, []byte(`{"agentId":"`+string(bob)+`"}`), func() {}, func(_ any, _ bool, err error) { removed <- err })
	if err := <-removed; err != nil {
		t.Fatal(err)
	}
	lacks(says(id, beta, &performatives.AcceptBody{ReferenceID: "p1", Remarks: remarked}), "widgets.co")
	signers[bob] = signer(t, b.Register(bob))
	if err := says(id, beta, &performatives.AcceptBody{ReferenceID: "p1", Remarks: remarked}); err != nil {
		t.Error(err)
	}
}

// A side escalates only so often in a session; the other side's do not count.
func TestEscalationsAreLimited(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{Escalations: 2})
	id := l.talk()
	l.rules(id, l.escalates(id, alpha))
	l.rules(id, l.escalates(id, alpha))
	l.refused(l.says(id, alpha, "ESCALATE", asks), session.RateLimited)
	l.escalates(id, beta)
	other := l.talk()
	l.escalates(other, alpha)
}

// The live State is the replayed one, and time does not go backwards in a
// transcript, when the wall clock is set while the broker runs (PROTOCOL.md §3).
func TestWallClockIsSet(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"back": -time.Minute, "forward": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var clock testkit.Clock
			b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute, Now: clock.Now})
			l := line{t, b, b.Plain()}
			id := l.talk()
			asked := l.escalates(id, alpha)
			clock.StepWall(step)
			l.rules(id, asked)
			clock.StepWall(-step / 2)
			l.accepted(l.says(id, alpha, "OBSERVE", `{"subject":"the time"}`))
			state := l.replayed(id)
			live, err := l.viewed(id)
			if err != nil {
				t.Fatal(err)
			}
			got, errGot := json.Marshal(live.Deadlines)
			want, errWant := json.Marshal(api.ViewSession(&state, state.Updated).Deadlines)
			if string(got) != string(want) || errGot != nil || errWant != nil {
				t.Errorf("live: %s\nreplayed: %s", got, want)
			}
		})
	}
}

// replayed folds a transcript and insists that its times do not go backwards.
func (l line) replayed(id performatives.SessionID) session.State {
	l.Helper()
	m, err := testkit.Request(l.nc, api.OperatorCall(api.SessionMessages.Name), []byte(`{"sessionId":"`+string(id)+`"}`))
	if err != nil {
		l.Fatal(err)
	}
	var page api.Messages
	if err := json.Unmarshal(m.Data, &page); err != nil {
		l.Fatal(err)
	}
	state := session.New(id, modes.All())
	for i, data := range page.Messages {
		entry, err := transcript.Read(data)
		if err != nil {
			l.Fatal(err)
		}
		at, err := entry.Stamp.AcceptedAt()
		if err != nil || at.Before(state.Updated) {
			l.Errorf("entry %d was accepted at %s (%v), after one at %s", i, at, err, state.Updated)
		}
		if state, err = session.Replay(state, entry.Message, entry.Stamp); err != nil {
			l.Fatal(err)
		}
	}
	return state
}

// A session that cannot be read in time makes the list unavailable, not shorter;
// what waited for it touches nothing of a call that was answered (-race).
func TestListWithABlockedSession(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	l.talk()
	letGo := l.Server.Broker.Command.Hold(l.talk())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	part, err := l.Server.Broker.Command.ListWithin(ctx, alpha)
	l.refused(err, session.Unavailable)
	letGo()
	all, err := l.Server.Broker.Command.ListWithin(t.Context(), alpha)
	if err != nil || len(all.Sessions) != 2 || len(part.Sessions) > 1 {
		t.Errorf("%d sessions, %v, want 2; %d before", len(all.Sessions), err, len(part.Sessions))
	}
}
