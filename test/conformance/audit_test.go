package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// audits registers an auditor and logs it in.
func audits(t *testing.T, b *testkit.Broker, uri string) *principal {
	t.Helper()
	key := b.Register(performatives.Agent(uri), func(c *api.Card) { c.Registry.MayDecide, c.Registry.Auditor = false, true })
	return &principal{T: t, uri: uri, key: key, nc: b.Plain(testkit.Login(t, key), nats.CustomInboxPrefix("_INBOX."+token(uri)))}
}

func (p *principal) calls(verb, request string) *nats.Msg {
	p.Helper()
	return ask(p.T, p.nc, "asp.agent."+token(p.uri)+".api."+verb, []byte(request))
}

// TestAuditors: an auditor reads the sessions in which its organisation takes
// part, learns nothing of others, and does nothing (PROTOCOL.md §9).
func TestAuditors(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w, alice := join(t, b, alpha), join(t, b, beta), join(t, b, "human://acme.com/alice")
	join(t, b, "agent://gizmo.io/gamma")
	ours, theirs := audits(t, b, "human://acme.com/audrey"), audits(t, b, "human://elsewhere.org/eve")
	id, another := v7(), v7()
	accepted(t, a.says(id, "PROPOSE", invite(beta)))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"inv"}`))
	accepted(t, w.says(another, "PROPOSE", invite("agent://gizmo.io/gamma")))
	escalation := accepted(t, a.says(id, "ESCALATE", `{"reason":"authority-limit","urgency":"high","context":"much"}`)).MessageID

	for verb, request := range map[string]string{
		"session.get": `{"sessionId":"` + id + `"}`, "session.messages": `{"sessionId":"` + id + `"}`, "escalation.get": `{"escalationId":"` + escalation + `"}`,
	} {
		m := ours.calls(verb, request)
		if got := string(m.Data); m.Header.Get("Nats-Service-Error") != "" || !strings.Contains(got, id) {
			t.Errorf("%s of the own organisation: %s", verb, got)
		}
		none := strings.NewReplacer(id, v7(), escalation, v7()).Replace(request)
		sameAnswer(t, theirs.calls(verb, request), theirs.calls(verb, none))
		if verb != "escalation.get" {
			other := strings.Replace(request, id, another, 1)
			sameAnswer(t, ours.calls(verb, other), ours.calls(verb, none))
			sameAnswer(t, ours.calls(verb, other), theirs.calls(verb, request))
		}
	}
	for _, c := range []struct {
		who             *principal
		sessions, items int
	}{{ours, 1, 1}, {theirs, 0, 0}} {
		var list struct {
			Sessions    []struct{ SessionID string }
			Escalations []struct{ EscalationID string }
		}
		for _, verb := range []string{"session.list", "escalation.list"} {
			if err := json.Unmarshal(c.who.calls(verb, "").Data, &list); err != nil {
				t.Error(err)
			}
		}
		if len(list.Sessions) != c.sessions || len(list.Escalations) != c.items || c.sessions == 1 && list.Sessions[0].SessionID != id {
			t.Errorf("%s lists %+v", c.who.uri, list)
		}
	}

	ruling := `{"type":"resolution","data":{"escalationId":"` + escalation + `","decision":"approved"}}`
	for name, m := range map[string]*nats.Msg{
		"a ruling":             ours.says(id, "INFORM", ruling),
		"a CLOSE":              ours.says(id, "CLOSE", "{}"),
		"a remark":             ours.says(id, "OBSERVE", `{"subject":"x"}`),
		"a session of its own": ours.says(v7(), "PROPOSE", invite(beta)),
		"an act elsewhere":     ours.says(another, "ACCEPT", `{"referenceId":"inv"}`),
		"a schema":             ours.calls("schema.put", `{"name":"x-v1","schema":{}}`),
		"a card":               ours.calls("agent.register", `{"card":{"name":"Alice"}}`),
		"another auditor's":    theirs.says(id, "INFORM", ruling),
		"another one's CLOSE":  theirs.says(id, "CLOSE", "{}"),
	} {
		if got := checkRefusal(t, m); got != "unauthorized" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := checkRefusal(t, ours.calls("agent.add", `{}`)); got != "malformed" { // no verb of theirs
		t.Error(got)
	}
	if sub, err := ours.nc.SubscribeSync("asp.agent." + token(alpha) + ".>"); err == nil {
		if err := ours.nc.Flush(); err == nil && sub.IsValid() {
			if err := ours.nc.LastError(); err == nil {
				t.Error("an auditor listens to another's subjects")
			}
		}
	}
	if at := accepted(t, alice.says(id, "INFORM", ruling)).SequenceNumber; *at != 3 {
		t.Errorf("the ruling is entry %d: what an auditor said is in the transcript", *at)
	}
}

// TestAuditorsAreNoDeciders: nobody is both, and no agent is an auditor.
func TestAuditorsAreNoDeciders(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	operator := b.Plain(testkit.Bare(t, b.Operator()), nats.CustomInboxPrefix("_INBOX.operator"))
	_, public := newKey(t)
	for _, card := range []string{
		`{"agentId":"human://acme.com/x","key":"` + public + `","registry":{"auditor":true,"mayDecide":true}}`,
		`{"agentId":"agent://acme.com/x","key":"` + public + `","registry":{"auditor":true}}`,
	} {
		if got := checkRefusal(t, ask(t, operator, "asp.operator.api.agent.add", []byte(`{"card":`+card+`}`))); got != "schema_invalid" {
			t.Errorf("%s: %s", card, got)
		}
	}
	a := join(t, b, alpha) // no card claims what is the registry's
	if got := checkRefusal(t, a.calls("agent.register", `{"card":{"registry":{"auditor":true}}}`)); got != "schema_invalid" {
		t.Errorf("an agent calls itself an auditor: %s", got)
	}
}
