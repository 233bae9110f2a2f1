package broker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// FuzzSubmit sends anything at all, as an envelope and as the body of each act
// in a session that goes on: the answer is an acceptance or a refusal of the
// exact shape, and says nothing of what is inside.
func FuzzSubmit(f *testing.F) {
	b := testkit.StartBroker(f, testkit.Options{Dev: true, Sync: time.Minute})
	nc := b.Plain()
	for i, body := range []string{
		`{"proposalId":"p1","type":"service-agreement","subject":"x","terms":{"price":1},"validUntil":"2099-01-01T00:00:00Z"}`,
		`{"referenceId":"p1"}`, `{"referenceId":"p1","code":"unspecified","reason":"x","retryable":true}`,
		`{"proposalId":"p2","referenceId":"p1","terms":{}}`, `{"type":"fact","data":{"referenceId":"p1","answers":[{"field":"a","answer":1}]}}`,
		`{"queryId":"q","queryType":"x","subject":"x"}`, `{"referenceId":"p1","questions":[{"field":"terms.price","question":"?"}]}`,
		`{"commitmentId":"c","terms":{"obligations":[{"party":"agent://acme.com/alpha","action":"x"}]}}`,
		`{"targetAgent":"agent://a.b/c","scope":"x","authority":"full","maxDepth":3}`,
		`{"reason":"authority-limit","urgency":"low","context":null}`, `{"referenceId":"p1","reason":"x"}`,
		`{"subject":"x\u0000\r\nX: y"}`, `{"outcome":"failed"}`, "", "\x00\xff", `{"type":"resolution","data":{"escalationId":"x","decision":"approved"}}`,
		`{"proposalId":"x\r\nNats-Service-Error: no","type":"x","subject":"x","terms":{}}`,
	} {
		f.Add(uint8(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, act uint8, data []byte) {
		id := uuid.Must(uuid.NewV7()).String()
		submit := func(sender performatives.Agent, envelope []byte) {
			answer(t, nc, api.Submit(sender, performatives.SessionID(id)), envelope)
		}
		submit(alpha, data)
		acts := performatives.All()
		name := acts[int(act)%len(acts)].String()
		answer(t, nc, api.Call(alpha, "session."+strings.ToLower(name)), data)
		answer(t, nc, api.Call(alpha, api.SchemaPut.Name), data)
		submit(alpha, envelope(id, alpha, "PROPOSE", `{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"participants":["agent://widgets.co/beta"]}}`))
		submit(beta, envelope(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
		submit(beta, envelope(id, beta, "PROPOSE", `{"proposalId":"p0","type":"x","subject":"x","terms":{"price":1}}`))
		submit(alpha, envelope(id, alpha, name, string(data)))
		submit(beta, envelope(id, beta, name, string(data)))
		answer(t, nc, api.Call(alpha, api.SessionGet.Name), []byte(`{"sessionId":"`+id+`"}`))
	})
}

func envelope(id string, sender performatives.Agent, act, body string) []byte {
	return fmt.Appendf(nil, `{"version":"asp/0.1","messageId":%q,"sessionId":%q,"timestamp":%q,"sender":{"agentId":%q},"performative":%q,"content":{"body":%s}}`,
		uuid.Must(uuid.NewV7()), id, time.Now().UTC().Format(time.RFC3339Nano), sender, act, body)
}

var inside = []string{"goroutine", "nats:", "runtime error", "jetstream", "json:", "jsontext", ".go:", "/tmp/", "performatives.", "session.State", "unmarshal"}

func answer(t *testing.T, nc *nats.Conn, subject string, data []byte) {
	t.Helper()
	m, err := testkit.Request(nc, subject, data)
	if err != nil {
		t.Fatalf("%s %q: %v", subject, data, err)
	}
	code := m.Header.Get(api.ErrorCodeHeader)
	if code == "" {
		if !json.Valid(m.Data) {
			t.Fatalf("%q is answered with %q", data, m.Data)
		}
		return
	}
	var refused struct {
		Accepted *bool `json:"accepted"`
		Error    *struct {
			Code      session.Code     `json:"code"`
			Category  session.Category `json:"category"`
			Message   string           `json:"message"`
			Retryable *bool            `json:"retryable"`
			Details   json.RawMessage  `json:"details"`
		} `json:"error"`
	}
	d := json.NewDecoder(strings.NewReader(string(m.Data)))
	d.DisallowUnknownFields()
	if err := d.Decode(&refused); err != nil || refused.Accepted == nil || *refused.Accepted || refused.Error == nil || refused.Error.Retryable == nil {
		t.Fatalf("%q is answered with %q: %v", data, m.Data, err)
	}
	e := refused.Error
	if fmt.Sprint(e.Code.Status()) != code || e.Category != e.Code.Category() || e.Message == "" || e.Code == session.Unavailable {
		t.Errorf("%q is answered with %s %q", data, code, m.Data)
	}
	for _, word := range inside {
		if strings.Contains(e.Message, word) && !strings.Contains(string(data), word) {
			t.Errorf("%q is answered with what is inside: %s", data, m.Data)
		}
	}
	if len(m.Header) != 2 || strings.ContainsAny(m.Header.Get(api.ErrorHeader), "\r\n") {
		t.Errorf("%q is answered with the headers %q", data, m.Header)
	}
}
