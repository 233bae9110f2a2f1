package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/parley-asp/parley/test/testkit"
)

// TestPublishedSchemas holds what is sent and answered against the schemas that schema.get publishes
// (PROTOCOL.md §4).
func TestPublishedSchemas(t *testing.T) {
	t.Parallel()
	_, nc := dev(t)
	call := func(who, verb, request string) []byte {
		t.Helper()
		m := ask(t, nc, "asp.agent."+token(who)+".api."+verb, []byte(request))
		if m.Header.Get("Nats-Service-Error") != "" {
			t.Fatalf("%s: %s", verb, m.Data)
		}
		return m.Data
	}
	validate := func(name string, data []byte) (kind string, schema *jsonschema.Schema, fault error) {
		t.Helper()
		var published struct {
			Kind   string
			Schema json.RawMessage
		}
		testkit.Must(t, json.Unmarshal(call(alpha, "schema.get", `{"name":"`+name+`"}`), &published))
		schema, err := jsonschema.CompileString(name+".json", string(published.Schema))
		testkit.Must(t, err)
		var v any
		testkit.Must(t, json.Unmarshal(data, &v))
		return published.Kind, schema, schema.Validate(v)
	}
	misfits := func(name string, data []byte) {
		t.Helper()
		if _, _, fault := validate(name, data); fault == nil {
			t.Errorf("%s takes %s", name, data)
		}
	}
	fits := func(name string, data []byte) {
		t.Helper()
		kind, schema, err := validate(name, data)
		if err != nil || kind != "contract" {
			t.Errorf("%s (%s): %v\n%.2000s", name, kind, err, data)
		}
		if schema.Validate(map[string]any{"accepted": 7.0, "decision": "x", "cursor": 7.0, "agentId": 7.0}) == nil {
			t.Errorf("%s accepts anything", name)
		}
	}
	says := func(session, who, act, body string) []byte {
		t.Helper()
		e := envelope(session, who, act, body)
		fits("envelope", []byte(e))
		m := ask(t, nc, submitSubject(who, session), []byte(e))
		accepted(t, m)
		fits("acceptance", m.Data)
		return m.Data
	}
	id, alice := v7(), "human://acme.com/alice"
	ref := `{"sessionId":"` + id + `"}`
	says(id, alpha, "PROPOSE", invite(beta))
	says(id, beta, "ACCEPT", `{"referenceId":"inv"}`)
	says(id, beta, "PROPOSE", `{"proposalId":"p1","type":"x","subject":"x","terms":{"price":15000}}`)
	says(id, alpha, "DELEGATE", `{"targetAgent":"agent://acme.com/legal","scope":"x","authority":"full","referenceId":"p1"}`)
	says(id, alpha, "CLARIFY", `{"referenceId":"p1","questions":[{"field":"terms.price","question":"why?","options":[1,"b"]}]}`)
	fits("check", call("agent://acme.com/legal", "check.get", ref))
	call(alice, "agent.register", `{"card":{"name":"Alice"}}`)
	var escalation struct{ MessageID string }
	testkit.Must(t, json.Unmarshal(says(id, alpha, "ESCALATE", `{"reason":"authority-limit","urgency":"high","context":{"a":1},"referenceId":"p1"}`), &escalation))
	item := `{"escalationId":"` + escalation.MessageID + `"}`
	for name, verb := range map[string]string{"escalation-item": "escalation.get", "case-log": "escalation.history"} {
		fits(name, call(alice, verb, item))
	}
	fits("escalation-item", call(alice, "escalation.claim", item))
	fits("escalation-item", call(alice, "escalation.comment", `{"escalationId":"`+escalation.MessageID+`","text":"hm"}`))
	fits("case-log", call(alice, "escalation.history", item))
	fits("escalation-list", call(alice, "escalation.list", `{}`))
	fits("escalation-watch", call(alice, "escalation.watch", `{}`))
	fits("session-view", call(alpha, "session.get", ref))
	ruling := `{"escalationId":"` + escalation.MessageID + `","decision":"approved","authority":{"maxAmount":20000,"termPath":"terms.price"}}`
	fits("resolution", []byte(ruling))
	says(id, alice, "INFORM", `{"type":"resolution","data":`+ruling+`}`)
	fits("session-view", call(alpha, "session.get", ref))
	fits("session-snapshot", call(alpha, "session.snapshot", ref))
	fits("session-snapshot", call(alice, "session.snapshot", `{"sessionId":"`+id+`","since":0}`))
	fits("session-list", call(alpha, "session.list", `{}`))
	fits("session-consumer", call(alpha, "session.consumer", ref))
	fits("agent-card", call(alpha, "agent.get", `{"agentId":"`+alice+`"}`))
	var page struct{ Messages []json.RawMessage }
	testkit.Must(t, json.Unmarshal(call(alpha, "session.messages", ref), &page))
	for _, entry := range page.Messages {
		fits("entry", entry)
	}
	refusal := func(code, details string) []byte {
		return []byte(`{"accepted":false,"error":{"code":"` + code + `","category":"protocol","message":"no","retryable":false,"details":` + details + `}}`)
	}
	fault := `[{"path":"/a","rule":"type","message":"want a string"}]`
	fits("refusal", refusal("schema_invalid", fault))
	fits("refusal", refusal("wrong_state", `{"state":"CLOSED","allowed":[]}`))
	misfits("refusal", refusal("schema_invalid", `{"path":"/a"}`))
	misfits("refusal", refusal("schema_invalid", `[{"path":"/a"}]`))
	misfits("refusal", refusal("wrong_state", fault))
	for _, refused := range []string{"{", envelope(id, alpha, "ACCEPT", `{}`), envelope(id, alpha, "ACCEPT", `{"referenceId":"p1"}`), envelope(v7(), alpha, "CLOSE", `{}`)} {
		session := id
		if !strings.Contains(refused, id) {
			session = v7()
		}
		m := ask(t, nc, submitSubject(alpha, session), []byte(refused))
		checkRefusal(t, m)
		fits("refusal", m.Data)
	}
}
