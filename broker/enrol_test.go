package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const anna = performatives.Agent("human://acme.com/anna")

// A browser's key is enrolled with a code that is good once; from then on it
// signs for its human, and the transcript pins it.
func TestEnrolledKeySigns(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	ctx := t.Context()
	own := signer(t, b.Register(alice))
	b.Register(anna)
	b.Register(beta)

	if _, err := b.Broker.Parts.Registry.Redeem(ctx, "AAAA-BBBB-CCCC-DDDD", newSigner(t).Key(), "guess"); testkit.CodeOf(err) != session.Unauthorized {
		t.Errorf("a code that was never made: %v", err)
	}
	browser := newSigner(t)
	e := enrol(t, b, alice)
	if _, err := b.Broker.Parts.Registry.Redeem(ctx, e.Code, own.Key(), "the human's own key"); testkit.CodeOf(err) != session.Duplicate {
		t.Errorf("a key that is somebody's already: %v", err)
	}
	if who, err := b.Broker.Parts.Registry.Redeem(ctx, e.Code, browser.Key(), "firefox"); err != nil || who != alice {
		t.Fatal(who, err)
	}
	if _, err := b.Broker.Parts.Registry.Redeem(ctx, e.Code, newSigner(t).Key(), "again"); testkit.CodeOf(err) != session.Unauthorized {
		t.Errorf("a code that was used: %v", err)
	}
	if _, err := b.Broker.Parts.Registry.Redeem(ctx, enrol(t, b, anna).Code, browser.Key(), "another human's"); testkit.CodeOf(err) != session.Duplicate {
		t.Errorf("another's device: %v", err)
	}
	if who, logsIn := b.Broker.Parts.Registry.Principal(browser.Key()); logsIn {
		t.Errorf("a device logs in as %s", who)
	}

	id := performatives.SessionID(uuid.Must(uuid.NewV7()).String())
	invites := func(s performatives.Signer) (api.Acceptance, error) {
		return b.Broker.Gateway.SubmitAs(ctx, alice, id, signedEnvelope(t, id, alice, s, &performatives.ProposeBody{
			ProposalID: "i1", Type: performatives.SessionInvitation, Subject: "a talk", Terms: []byte(`{"participants":["` + string(beta) + `"]}`),
		}))
	}
	if _, err := invites(newSigner(t)); testkit.CodeOf(err) != session.SignatureInvalid {
		t.Errorf("a key that nobody enrolled: %v", err)
	}
	accepted, err := invites(browser)
	if err != nil || accepted.State != session.Invited {
		t.Fatal(accepted, err)
	}
	reply, err := b.Broker.Gateway.CallAs(ctx, alice, api.SessionGet.Name, []byte(`{"sessionId":"`+string(id)+`"}`))
	testkit.Must(t, err)
	var view api.SessionView
	testkit.Must(t, json.Unmarshal(reply, &view))
	if view.Participants[0].Key != browser.Key() {
		t.Errorf("pinned is %s", view.Participants[0].Key)
	}
	if _, err := b.Broker.Gateway.CallAs(ctx, anna, api.SessionGet.Name, []byte(`{"sessionId":"`+string(id)+`"}`)); testkit.CodeOf(err) != session.UnknownSession {
		t.Errorf("an outsider: %v", err)
	}

	unenrol, err := json.Marshal(api.DeviceRef{Agent: alice, Key: browser.Key()})
	testkit.Must(t, err)
	operator(t, b, api.HumanUnenrol.Name, unenrol, nil)
	if _, err := b.Broker.Gateway.SubmitAs(ctx, alice, id, signedEnvelope(t, id, alice, browser, &performatives.WithdrawBody{ReferenceID: "i1"})); testkit.CodeOf(err) != session.SignatureInvalid {
		t.Errorf("a key that was taken away: %v", err)
	}
}

// A human who escalates by a device is among those who may decide, whom the entry
// pins too: it is the device's key that the entry is verified by.
func TestDeviceEscalates(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	ctx := t.Context()
	b.Register(alice)
	betas := signer(t, b.Register(beta))
	browser := newSigner(t)
	if _, err := b.Broker.Parts.Registry.Redeem(ctx, enrol(t, b, alice).Code, browser.Key(), "firefox"); err != nil {
		t.Fatal(err)
	}
	id := performatives.SessionID(uuid.Must(uuid.NewV7()).String())
	for _, act := range []struct {
		by     performatives.Agent
		signer performatives.Signer
		body   performatives.Body
	}{
		{alice, browser, &performatives.ProposeBody{
			ProposalID: "i1", Type: performatives.SessionInvitation, Subject: "a talk", Terms: []byte(`{"participants":["` + string(beta) + `"]}`),
		}},
		{beta, betas, &performatives.AcceptBody{ReferenceID: "i1"}},
		{alice, browser, &performatives.EscalateBody{Reason: "confidence-low", Urgency: "high", Context: []byte(`"?"`)}},
	} {
		if _, err := b.Broker.Gateway.SubmitAs(ctx, act.by, id, signedEnvelope(t, id, act.by, act.signer, act.body)); err != nil {
			t.Fatal(err)
		}
	}
	reply, err := b.Broker.Gateway.CallAs(ctx, alice, api.SessionGet.Name, []byte(`{"sessionId":"`+string(id)+`"}`))
	testkit.Must(t, err)
	var view api.SessionView
	testkit.Must(t, json.Unmarshal(reply, &view))
	if view.State != session.Escalated || view.Participants[0].Key != browser.Key() {
		t.Errorf("%s, and pinned is %s, not the device's key", view.State, view.Participants[0].Key)
	}
}

func enrol(t *testing.T, b *testkit.Broker, a performatives.Agent) (e api.Enrolment) {
	t.Helper()
	operator(t, b, api.HumanEnrol.Name, []byte(`{"agentId":"`+string(a)+`"}`), &e)
	return e
}

// operator asks as an operator, on the broker's own connection.
func operator(t *testing.T, b *testkit.Broker, verb string, request []byte, answer any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	reply, err := b.Broker.Options.Conn.RequestWithContext(ctx, api.OperatorCall(verb), request)
	testkit.Must(t, err)
	if reply.Header.Get(api.ErrorHeader) != "" {
		t.Fatalf("%s: %s", verb, reply.Data)
	}
	if answer != nil {
		testkit.Must(t, json.Unmarshal(reply.Data, answer))
	}
}

func newSigner(t *testing.T) performatives.Signer {
	t.Helper()
	key, err := nkeys.CreateUser()
	testkit.Must(t, err)
	return signer(t, key)
}

func signer(t *testing.T, key nkeys.KeyPair) performatives.Signer {
	t.Helper()
	s, err := performatives.NewSigner(key)
	testkit.Must(t, err)
	return s
}

func signedEnvelope(t *testing.T, id performatives.SessionID, from performatives.Agent, s performatives.Signer, body performatives.Body) []byte {
	t.Helper()
	e, err := performatives.Draft{
		ID: performatives.MessageID(uuid.Must(uuid.NewV7()).String()), Session: id, Timestamp: time.Now(), Sender: from, Body: body,
	}.Envelope(s)
	testkit.Must(t, err)
	return e
}
