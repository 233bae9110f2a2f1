package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-asp/parley/test/testkit"
)

// code is what a request was refused with, "" where it was not.
func code(t *testing.T, data []byte) string {
	t.Helper()
	var reply struct{ Error struct{ Code string } }
	if err := json.Unmarshal(data, &reply); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return reply.Error.Code
}

// TestLateApprover: from an ESCALATE on, the humans who may decide have a part,
// also one who was registered after it and has not spoken yet (PROTOCOL.md §3).
func TestLateApprover(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w := join(t, b, alpha), join(t, b, beta)
	join(t, b, "human://acme.com/early") // or nobody could answer
	id := v7()
	accepted(t, a.says(id, "PROPOSE", invite(beta)))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"inv"}`))
	accepted(t, a.says(id, "ESCALATE", `{"reason":"policy-ambiguous","urgency":"low","context":"odd"}`))
	late, outsider := join(t, b, "human://acme.com/late"), join(t, b, "human://widgets.co/bob")
	for _, verb := range []string{"session.get", "session.messages"} {
		for who, want := range map[*principal]string{late: "", outsider: "unknown_session"} {
			m := ask(t, who.nc, "asp.agent."+token(who.uri)+".api."+verb, []byte(`{"sessionId":"`+id+`"}`))
			if got := code(t, m.Data); got != want {
				t.Errorf("%s of %s is answered with %q, want %q", verb, who.uri, got, want)
			}
		}
	}
	m := ask(t, late.nc, "asp.agent."+token(late.uri)+".api.session.list", nil)
	if !strings.Contains(string(m.Data), id) {
		t.Errorf("session.list of %s lacks the session: %s", late.uri, m.Data)
	}
	m = ask(t, outsider.nc, "asp.agent."+token(outsider.uri)+".api.session.list", nil)
	if strings.Contains(string(m.Data), id) {
		t.Errorf("session.list of %s has the session: %s", outsider.uri, m.Data)
	}
}

// TestUnknownRecipient: without --dev, who is not registered is unknown_agent,
// as a recipient too (PROTOCOL.md §10).
func TestUnknownRecipient(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w := join(t, b, alpha), join(t, b, beta)
	id := v7()
	accepted(t, a.says(id, "PROPOSE", invite(beta)))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"inv"}`))
	for recipient, want := range map[string]string{"agent://nobody.com/x": "unknown_agent", beta: ""} {
		observe := strings.Replace(envelope(id, alpha, "OBSERVE", `{"subject":"x"}`), `"performative"`, `"recipient":"`+recipient+`","performative"`, 1)
		m := ask(t, a.nc, submitSubject(alpha, id), signWith(t, a.key, observe))
		if got := code(t, m.Data); got != want {
			t.Errorf("an OBSERVE to %s is answered with %q, want %q", recipient, got, want)
		}
	}
}

// TestWhatHasToBeThere: a call without its card changes nothing, and a signature
// is a signature under --dev too (PROTOCOL.md §3, §9).
func TestWhatHasToBeThere(t *testing.T) {
	t.Parallel()
	_, nc := dev(t)
	register := "asp.agent." + token(alpha) + ".api.agent.register"
	if got := code(t, ask(t, nc, register, []byte(`{"card":{"name":"Alpha","kind":"system"}}`)).Data); got != "" {
		t.Fatal(got)
	}
	for _, request := range []string{"", "{}", `{"agentId":"` + alpha + `","name":"Z"}`} {
		if got := code(t, ask(t, nc, register, []byte(request)).Data); got != "malformed" {
			t.Errorf("agent.register %q is answered with %q", request, got)
		}
	}
	m := ask(t, nc, "asp.agent."+token(alpha)+".api.agent.get", []byte(`{"agentId":"`+alpha+`"}`))
	if !strings.Contains(string(m.Data), `"name":"Alpha"`) {
		t.Errorf("the card is now %s", m.Data)
	}
	id := v7()
	odd := strings.Replace(envelope(id, alpha, "PROPOSE", invite(beta)), `"integrity":{`, `"integrity":{"signature":"x"`, 1)
	if !strings.Contains(odd, `"signature":"x"`) {
		t.Fatal("the envelope has no integrity to sign in")
	}
	if got := code(t, ask(t, nc, submitSubject(alpha, id), []byte(odd)).Data); got != "signature_invalid" {
		t.Errorf("a signature that is none is answered with %q", got)
	}
}
