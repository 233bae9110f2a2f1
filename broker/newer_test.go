package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/cluster"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A session of a newer format keeps rules that this version does not know. The broker refuses
// its acts as unavailable, so that whoever asks again may reach a newer broker, and appends
// nothing to it.
func TestSessionOfANewerFormat(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	known, newer := newID(), newID()
	l.accepted(l.says(known, alpha, "PROPOSE", invitation(beta)))
	var stored api.Stored
	l.reads(api.AuditMessages.Name, fmt.Sprintf(`{"sessionId":%q}`, known), &stored)
	entry := bytes.ReplaceAll(stored.Messages[0], []byte(known), []byte(newer))
	entry = bytes.Replace(entry, fmt.Appendf(nil, `"format":%d`, performatives.Format), []byte(`"format":99`), 1)
	js, err := l.Broker.Broker.Options.Conn.JetStream()
	testkit.Must(t, err)
	_, err = js.Publish(api.Session(newer), entry)
	testkit.Must(t, err)

	// Whoever recovers the work of a dead broker must not take the session for one that cannot go on.
	unread := <-l.Server.Broker.Command.Recover(newer, 0)
	if _, is := errors.AsType[*performatives.NewerFormatError](unread); !is || errors.Is(unread, cluster.ErrBroken) {
		t.Errorf("recovered: %v", unread)
	}
	for subject, request := range map[string]string{
		api.Submit(alpha, newer):                  string(envelope(string(newer), alpha, "OBSERVE", `{"subject":"x"}`)),
		api.Call(alpha, api.SessionGet.Name):      fmt.Sprintf(`{"sessionId":%q}`, newer),
		api.Call(alpha, api.SessionMessages.Name): fmt.Sprintf(`{"sessionId":%q}`, newer),
	} {
		m, err := l.nc.Request(subject, []byte(request), testkit.Patience)
		testkit.Must(t, err)
		if code := m.Header.Get(api.ErrorCodeHeader); code != fmt.Sprint(session.Unavailable.Status()) {
			t.Errorf("%s: %s %s", subject, code, m.Data)
		}
	}
	info, err := js.StreamInfo(api.SessionsStream, &nats.StreamInfoRequest{SubjectsFilter: api.Session(newer)})
	testkit.Must(t, err)
	if n := info.State.Subjects[api.Session(newer)]; n != 1 {
		t.Errorf("the session of the newer format has %d entries", n)
	}
	m, err := l.nc.Request(api.Call(alpha, api.SessionGet.Name), fmt.Appendf(nil, `{"sessionId":%q}`, known), testkit.Patience)
	testkit.Must(t, err)
	if m.Header.Get(api.ErrorCodeHeader) != "" {
		t.Errorf("a session of the known format: %s", m.Data)
	}
}

// An entry that no broker wrote ends one session. What else its participants and the operator have is listed.
func TestBrokenSessionIsLeftOutOfLists(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	whole, broken := newID(), newID()
	l.accepted(l.says(whole, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(broken, alpha, "PROPOSE", invitation(beta)))
	var stored api.Stored
	l.reads(api.AuditMessages.Name, fmt.Sprintf(`{"sessionId":%q}`, broken), &stored)
	js, err := l.Broker.Broker.Options.Conn.JetStream()
	testkit.Must(t, err)
	_, err = js.Publish(api.Session(broken), stored.Messages[0])
	testkit.Must(t, err)

	m, err := l.nc.Request(api.Call(alpha, api.SessionGet.Name), fmt.Appendf(nil, `{"sessionId":%q}`, broken), testkit.Patience)
	testkit.Must(t, err)
	testkit.Refused(t, m, session.Unavailable)
	for _, subject := range []string{api.Call(alpha, api.SessionList.Name), api.Call(beta, api.SessionList.Name), api.OperatorCall(api.SessionList.Name)} {
		m, err := testkit.Request(l.nc, subject, []byte("{}"))
		testkit.Must(t, err)
		var page api.Sessions
		testkit.Must(t, json.Unmarshal(m.Data, &page))
		if len(page.Sessions) != 1 || page.Sessions[0].Session != whole {
			t.Errorf("%s: %s", subject, m.Data)
		}
	}
	for _, verb := range []string{api.AgreementList.Name, api.ObligationList.Name} {
		testkit.Must(t, l.ask(api.Call(alpha, verb), []byte("{}")))
	}
}
