package broker_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// A request without a required member, with a misspelt one or with one of another type is
// malformed, and the refusal names its path (PROTOCOL.md §9).
func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	for _, c := range []struct{ verb, request, path, says string }{
		{"session.get", ``, "/sessionId", "is missing"},
		{"session.get", `{}`, "/sessionId", "is missing"},
		{"session.get", `{"sessionId":null}`, "/sessionId", "is missing"},
		{"session.get", `{"sesionId":"x"}`, "/sesionId", "the verb does not take it; it takes sessionId"},
		{"session.get", `{"sessionId":"x","sessionID":"x"}`, "/sessionID", "it takes sessionId"},
		{"session.get", `{"sessionId":7}`, "/sessionId", "want a string"},
		{"session.get", `[]`, "", "want an object"},
		{"session.list", `{"limit":"ten"}`, "/limit", "want a number"},
		{"session.list", `{"limit":1.5}`, "/limit", "want a number"},
		{"session.list", `{"a/b":1}`, "/a~1b", "it takes state, awaiting, with, search, since, until, limit, cursor"},
		{"broker.info", `{"all":true}`, "/all", "it takes no members"},
		{"schema.put", `{"name":"a-v1"}`, "/schema", "is missing"},
		{"agent.register", `{"card":{"agentId":"` + string(alpha) + `","capabilities":["a",7]}}`, "/card/capabilities/1", "want a string"},
		{"agent.register", `{"card":{"agentId":"` + string(alpha) + `","maxTransactionValue":"much"}}`, "/card/maxTransactionValue", "want a number"},
		{"escalation.claim", `{"escalationId":"x","leaseMs":true}`, "/leaseMs", "want a number"},
	} {
		err := l.ask(api.Call(alpha, c.verb), []byte(c.request))
		refusal, ok := errors.AsType[*session.Refusal](err)
		if !ok || refusal.Code != session.MalformedEnvelope || !strings.Contains(refusal.Message, c.says) {
			t.Errorf("%s %s: %v, want malformed, %q", c.verb, c.request, err, c.says)
			continue
		}
		var details struct{ Path string }
		data, err := json.Marshal(refusal.Details)
		if err == nil {
			err = json.Unmarshal(data, &details)
		}
		if err != nil || details.Path != c.path {
			t.Errorf("%s %s: details %s, want the path %q", c.verb, c.request, data, c.path)
		}
	}
	l.accepted(l.ask(api.Call(alpha, api.SessionList.Name), nil))
	l.accepted(l.ask(api.Call(alpha, api.SessionList.Name), []byte(`{"state":null}`)))
}

// The micro service says how long the answers of each endpoint took, also those that came after its handler returned.
func TestAnswerTimes(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	here, nc := at.OpenBroker()
	fault.NewWitness(t, at.URL).Open(alpha, beta)
	m, err := nc.Request("$SRV.STATS."+api.ServiceName, nil, testkit.Patience)
	testkit.Must(t, err)
	var stats struct {
		Endpoints []struct {
			Name string
			Took time.Duration `json:"average_processing_time"`
			Data struct{ AverageAnswerTime time.Duration }
		}
	}
	testkit.Must(t, json.Unmarshal(m.Data, &stats))
	var answer, handler time.Duration
	for _, e := range stats.Endpoints {
		if e.Name == "submit" {
			answer, handler = e.Data.AverageAnswerTime, e.Took
		}
	}
	if handler <= 0 || answer <= 0 || answer > testkit.Patience || len(stats.Endpoints) != 3 {
		t.Errorf("the answer took %v, its handler %v: %s", answer, handler, m.Data)
	}
	at.close(here)
}

// A wrong signature tells the SHA-256 of the bytes that were checked, so that its sender can
// compare them with what it signed (PROTOCOL.md §3).
func TestWrongSignature(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Sync: time.Minute})
	sender := w.Principal(alpha)
	id := testkit.NewSession()
	signed := sender.Envelope(id, testkit.Invitation(beta))
	forged := bytes.Replace(signed, []byte(`"ed25519:`), []byte(`"ed25519:00`), 1)
	at := bytes.Index(forged, []byte(`"ed25519:`)) + len(`"ed25519:`)
	forged = append(forged[:at+126:at+126], forged[at+128:]...) // two digits more, two less
	m, err := performatives.Read(forged)
	if err != nil {
		t.Fatal(err)
	}
	var refused struct {
		Error struct {
			Code    session.Code
			Details struct {
				SHA256 performatives.Hash
				Bytes  int
			}
		}
	}
	reply := sender.Submit(id, forged)
	if err := json.Unmarshal(reply.Data, &refused); err != nil {
		t.Fatal(err)
	}
	checked := m.SigningBytes()
	if refused.Error.Code != session.SignatureInvalid || refused.Error.Details.SHA256 != performatives.HashOf(checked) || refused.Error.Details.Bytes != len(checked) {
		t.Errorf("%s, want the hash of %s", reply.Data, checked)
	}
}
