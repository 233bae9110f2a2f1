package broker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// limitedBy insists on a rate_limited of a limit and returns when to ask again.
func limitedBy(t *testing.T, err error, limit string) (retryAfterMs int64) {
	t.Helper()
	refusal, ok := errors.AsType[*session.Refusal](err)
	if !ok || refusal.Code != session.RateLimited {
		t.Fatalf("%v, want rate_limited", err)
	}
	var d api.Limited
	switch details := refusal.Details.(type) {
	case api.Limited:
		d = details
	default:
		raw, err := json.Marshal(refusal.Details)
		testkit.Must(t, err)
		testkit.Must(t, json.Unmarshal(raw, &d))
	}
	if d.Limit != limit || d.RetryAfter <= 0 {
		t.Errorf("details %+v, want limit %s and when to ask again", d, limit)
	}
	return d.RetryAfter
}

// A line asks a broker under --dev.
type line struct {
	*testing.T
	*testkit.Broker
	nc *nats.Conn
}

func limited(t *testing.T, l limits.Limits) line {
	t.Helper()
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute, Limits: l})
	return line{t, b, b.Plain()}
}

// ask returns the refusal, nil for what was accepted.
func (l line) ask(subject string, data []byte) error {
	l.Helper()
	m, err := testkit.Request(l.nc, subject, data)
	if err != nil {
		l.Fatal(err)
	}
	if m.Header.Get(api.ErrorCodeHeader) == "" {
		return nil
	}
	var refused api.ErrorReply
	if err := json.Unmarshal(m.Data, &refused); err != nil {
		l.Fatalf("%s: %v", m.Data, err)
	}
	r := refused.Refusal()
	if m.Header.Get(api.ErrorCodeHeader) != fmt.Sprint(r.Code.Status()) || refused.Error.Retryable != r.Code.Retryable() {
		l.Errorf("%v %s", m.Header, m.Data)
	}
	return r
}

func (l line) says(id performatives.SessionID, sender performatives.Agent, act, body string) error {
	l.Helper()
	return l.ask(api.Submit(sender, id), envelope(string(id), sender, act, body))
}

func (l line) refused(err error, want session.Code) {
	l.Helper()
	if refusal, ok := errors.AsType[*session.Refusal](err); !ok || refusal.Code != want {
		l.Errorf("%v, want %s", err, want)
	}
}

func (l line) accepted(err error) {
	l.Helper()
	if err != nil {
		l.Error(err)
	}
}

func newID() performatives.SessionID {
	return performatives.SessionID(uuid.Must(uuid.NewV7()).String())
}

func invitation(who ...performatives.Agent) string {
	list, err := json.Marshal(who)
	if err != nil {
		panic(err)
	}
	return `{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"participants":` + string(list) + `}}`
}

// Rate comes before everything: what is too much is not read, enters nothing,
// and is of one principal (PROTOCOL.md §3, §9).
func TestRate(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{Rate: 1e-6, Burst: 2})
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.ask(api.Call(alpha, api.SessionGet.Name), []byte(`{"sessionId":"`+string(id)+`"}`)))
	for _, data := range [][]byte{
		envelope(string(id), alpha, "CLOSE", "{}"), []byte("no JSON"), make([]byte, 300<<10), envelope(string(newID()), beta, "PROPOSE", invitation(alpha)),
	} {
		limitedBy(t, l.ask(api.Submit(alpha, id), data), "rate")
	}
	limitedBy(t, l.ask(api.Call(alpha, "no.verb"), nil), "rate")
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	var page api.Messages
	m, err := testkit.Request(l.nc, api.OperatorCall(api.SessionMessages.Name), []byte(`{"sessionId":"`+string(id)+`"}`))
	testkit.Must(t, err)
	if err := json.Unmarshal(m.Data, &page); err != nil || len(page.Messages) != 2 {
		t.Errorf("the transcript has %d entries (%v), want 2", len(page.Messages), err)
	}
}

// What principals of one organisation together put into the inboxes of another one is bounded, and
// keeps none of them from a third.
func TestPairOfOrganisations(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{Items: 6})
	ours := []performatives.Agent{alpha, "agent://acme.com/other"}
	for _, a := range ours { // five copies each
		l.accepted(l.says(newID(), a, "PROPOSE", invitation("agent://widgets.co/1", "agent://widgets.co/2", "agent://widgets.co/3", "agent://widgets.co/4", beta)))
	}
	for _, a := range ours {
		limitedBy(t, l.says(newID(), a, "PROPOSE", invitation(beta)), "pairItems")
		l.accepted(l.says(newID(), a, "PROPOSE", invitation("agent://third.example/gamma")))
	}
	l.accepted(l.says(newID(), beta, "PROPOSE", invitation("agent://third.example/gamma")))
}

// Who asks too much is told of, once in a while and with how often: to monitors and to the log.
func TestLimitedIsToldOf(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.DebugLevel)
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute, Limits: limits.Limits{Rate: 1e-6, Burst: 1}, Log: zap.New(core)})
	l := line{t, b, b.Plain()}
	events, err := l.nc.SubscribeSync("asp.event.*.limited")
	testkit.Must(t, err)
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	for range 5 {
		limitedBy(t, l.says(id, alpha, "CLOSE", `{"summary":"secret words"}`), "rate")
	}
	limitedBy(t, l.ask(api.Call(alpha, api.BrokerInfo.Name), nil), "rate")
	m, err := events.NextMsg(testkit.Patience)
	testkit.Must(t, err)
	var event struct {
		Kind, Sender, Code string
		Times              int
		Details            api.Limited
	}
	if err := json.Unmarshal(m.Data, &event); err != nil || event.Kind != "limited" || event.Sender != string(alpha) ||
		event.Code != "rate_limited" || event.Times != 1 || event.Details.Limit != "rate" || m.Subject != api.Event(id, "limited") {
		t.Errorf("%s %s %v", m.Subject, m.Data, err)
	}
	said := logs.FilterMessage("a principal exceeds its limits").All()
	if len(said) == 0 || len(said) > 3 || said[0].Level != zap.DebugLevel {
		t.Errorf("of 6 times the log says %d: %v", len(said), said)
	}
	if strings.Contains(fmt.Sprint(said), "secret words") {
		t.Error("the log has the body")
	}
}

// An envelope may be bound to fewer bytes than the protocol has, and not to more.
func TestBytes(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{Bytes: 2000})
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	large := `{"type":"fact","data":"` + strings.Repeat("x", 2000) + `"}`
	err := l.says(id, alpha, "INFORM", large)
	l.refused(err, session.TooLarge)
	if refusal, ok := errors.AsType[*session.Refusal](err); !ok || !strings.Contains(fmt.Sprintf("%s", refusal.Details), "2000") {
		t.Errorf("the refusal does not say how many there may be: %v", err)
	}
	l = limited(t, limits.Limits{Bytes: 1 << 30})
	l.refused(l.says(id, alpha, "INFORM", strings.Repeat(" ", performatives.MaxEnvelope)+"{}"), session.TooLarge)
}

// An organisation takes so many names of terms schemas, and no more; other
// organisations, and operators, take theirs.
func TestSchemasOfOne(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{Schemas: 2})
	put := func(subject func(string) string, name string) error {
		return l.ask(subject(api.SchemaPut.Name), []byte(`{"name":"`+name+`","schema":{"type":"object"}}`))
	}
	by := func(a performatives.Agent) func(string) string {
		return func(verb string) string { return api.Call(a, verb) }
	}
	l.accepted(put(by(alpha), "a-v1"))
	l.accepted(put(by("agent://acme.com/other"), "b-v1"))
	l.refused(put(by(alpha), "c-v1"), session.TooLarge)
	l.accepted(put(by(alpha), "a-v1")) // the same again is no other
	l.accepted(put(by(beta), "c-v1"))
	l.accepted(put(api.OperatorCall, "d-v1"))
}

// What waits for its answer is bounded, and answered all the same.
func TestInFlight(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{InFlight: 3})
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	letGo := l.Server.Broker.Command.Hold(id)
	answers, err := l.nc.SubscribeSync(l.nc.NewInbox())
	testkit.Must(t, err)
	for range 3 {
		testkit.Must(t, l.nc.PublishRequest(api.Submit(alpha, id), answers.Subject, envelope(string(id), alpha, "OBSERVE", `{"subject":"x"}`)))
	}
	limitedBy(t, l.says(id, alpha, "OBSERVE", `{"subject":"x"}`), "inFlight")
	limitedBy(t, l.ask(api.Call(alpha, api.BrokerInfo.Name), nil), "inFlight")
	l.accepted(l.ask(api.Call(beta, api.BrokerInfo.Name), nil))
	letGo()
	for range 3 {
		m, err := answers.NextMsg(testkit.Patience)
		if err != nil || m.Header.Get(api.ErrorCodeHeader) != "" {
			t.Error(m, err)
		}
	}
	l.accepted(l.says(id, alpha, "OBSERVE", `{"subject":"x"}`))
}

// Who holds too many sessions open opens no more until one is over; the same
// bytes are accepted then. A restart does not forget them.
func TestSessionsOfOne(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{Sessions: 2})
	one, two, three := newID(), newID(), newID()
	for _, id := range []performatives.SessionID{one, two} {
		l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	}
	more := envelope(string(three), alpha, "PROPOSE", invitation(beta))
	limitedBy(t, l.ask(api.Submit(alpha, three), more), "sessions")
	l.Down()
	l.Up()
	l.nc = l.Plain()
	limitedBy(t, l.ask(api.Submit(alpha, three), more), "sessions")
	l.accepted(l.says(newID(), beta, "PROPOSE", invitation(alpha)))
	l.accepted(l.says(one, beta, "REJECT", `{"referenceId":"inv","code":"unspecified","reason":"x","retryable":false}`))
	l.accepted(l.ask(api.Submit(alpha, three), more))
	limitedBy(t, l.says(newID(), alpha, "PROPOSE", invitation(beta)), "sessions")
	l.refused(l.says(newID(), alpha, "PROPOSE", `{}`), session.SchemaInvalid) // only what would be accepted is limited
}

// Whom an organisation invites has so many of its invitations to answer and no more, whichever
// agents invite. Others invite meanwhile; an answer makes room, and a restart forgets nothing.
func TestInvitationsOfOne(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{Invitations: 2})
	const colleague, second, innocent = "agent://acme.com/second", "agent://widgets.co/second", "agent://innocent.org/a"
	one := newID()
	l.accepted(l.says(one, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(newID(), colleague, "PROPOSE", invitation(second, gamma)))
	three := newID()
	more := envelope(string(three), alpha, "PROPOSE", invitation(beta))
	events, err := l.nc.SubscribeSync("asp.event.*.limited")
	testkit.Must(t, err)
	limitedBy(t, l.ask(api.Submit(alpha, three), more), "invitations")
	told, err := events.NextMsg(testkit.Patience)
	testkit.Must(t, err)
	if said := string(told.Data); !strings.Contains(said, `"limit":"invitations"`) || !strings.Contains(said, string(alpha)) {
		t.Errorf("monitors are told %s", said)
	}
	l.accepted(l.says(newID(), innocent, "PROPOSE", invitation(beta)))
	l.accepted(l.says(newID(), beta, "PROPOSE", invitation(alpha)))
	for range 3 {
		l.accepted(l.says(newID(), alpha, "PROPOSE", invitation(colleague)))
	}
	l.Down()
	l.Up()
	l.nc = l.Plain()
	limitedBy(t, l.ask(api.Submit(alpha, three), more), "invitations")
	l.accepted(l.says(one, beta, "ACCEPT", `{"referenceId":"inv"}`))
	l.accepted(l.ask(api.Submit(alpha, three), more))
	limitedBy(t, l.says(newID(), colleague, "PROPOSE", invitation(second)), "invitations")
	l.accepted(l.says(three, alpha, "WITHDRAW", `{"referenceId":"inv"}`))
	l.accepted(l.says(newID(), colleague, "PROPOSE", invitation(second)))
}

// The participants of a session are bounded, and those who are let in by
// DELEGATE besides; no time changes that, so it is not rate_limited.
func TestParticipants(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{Participants: 2})
	id := newID()
	l.refused(l.says(id, alpha, "PROPOSE", invitation(beta, gamma)), session.TooLarge)
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	delegate := func(i int) error {
		return l.says(id, alpha, "DELEGATE", fmt.Sprintf(`{"targetAgent":"agent://acme.com/d%d","scope":"x","authority":"full"}`, i))
	}
	l.accepted(delegate(1))
	l.accepted(delegate(2))
	l.refused(delegate(3), session.TooLarge)
	l.accepted(l.says(id, alpha, "ESCALATE", `{"reason":"authority-limit","urgency":"low","context":"x"}`))
}

// Who sends without waiting is answered in the order in which it sent, also beyond
// what is worked on at once.
func TestOrderOfOne(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	answers, err := l.nc.SubscribeSync(l.nc.NewInbox())
	testkit.Must(t, err)
	const acts = 250
	for i := range acts {
		body := fmt.Sprintf(`{"proposalId":"p%d","type":"x","subject":"x","terms":{"n":%d}}`, i/2, i/2)
		act := "PROPOSE"
		if i%2 == 1 {
			act, body = "WITHDRAW", fmt.Sprintf(`{"referenceId":"p%d"}`, i/2)
		}
		testkit.Must(t, l.nc.PublishRequest(api.Submit(alpha, id), answers.Subject, envelope(string(id), alpha, act, body)))
	}
	for range acts {
		m, err := answers.NextMsg(testkit.Patience)
		testkit.Must(t, err)
		if m.Header.Get(api.ErrorCodeHeader) != "" {
			t.Errorf("%s", m.Data)
		}
	}
}
