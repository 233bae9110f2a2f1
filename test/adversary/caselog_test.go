package adversary

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// TestCaseLogIsClosed: what colleagues say and do around an escalation, and how far each of them may
// go, is nobody's outside: the counterparty would like to know it most of all.
func TestCaseLogIsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.Principal(alice)
	_, err := w.Server.Broker.Parts.Registry.Add(context.Background(), api.Card{Agent: alice, Key: a.Signer.Key(), LoginKeys: testkit.LoginKeys(t, a.Signer), Registry: api.Registry{
		MayDecide: true, Limits: []performatives.Limit{{Currency: "EUR", MaxAmount: 998877665544}},
	}})
	testkit.Must(t, err)
	escalation := w.Principal(alpha).Say(w.deal, &performatives.EscalateBody{
		Reason: "authority-limit", Urgency: "high", Context: []byte(`"15000"`), ReferenceID: "p1",
	}).Message
	ask := func(p *testkit.Principal, verb, more string) (text string, refusal session.Code) {
		m := p.Call(verb, fmt.Sprintf(`{"escalationId":%q%s}`, escalation, more))
		if m.Header.Get(api.ErrorCodeHeader) != "" {
			return string(m.Data), testkit.Code(t, m)
		}
		return string(m.Data), ""
	}
	for verb, more := range map[string]string{api.EscalationClaim.Name: "", api.EscalationComment.Name: `,"text":"we would pay seventy thousand"`} {
		if text, code := ask(a, verb, more); code != "" {
			t.Fatalf("alice: %s %s", verb, text)
		}
	}
	secrets := []string{"seventy thousand", "998877665544", `"claim"`, `"comments"`, `"approvers"`, `"route"`, `"claimed"`}
	if text, _ := ask(a, api.EscalationGet.Name, ""); !strings.Contains(text, "seventy thousand") || !strings.Contains(text, "998877665544") {
		t.Fatalf("alice does not see what the others must not: %s", text)
	}
	outside := []performatives.Agent{beta, alpha, bob, carol, eve, mallory, delta}
	w.harmless(func() {
		for _, who := range outside {
			p := w.Principal(who)
			for verb, request := range map[string]string{
				api.EscalationGet.Name: "", api.EscalationHistory.Name: "", api.EscalationList.Name: `,"status":"all"`, api.EscalationWatch.Name: `,"since":"0"`,
				api.AgentGet.Name: `,"agentId":"` + string(alice) + `"`, api.AgentList.Name: "",
				api.SessionGet.Name: `,"sessionId":"` + string(w.deal) + `"`, api.SessionMessages.Name: `,"sessionId":"` + string(w.deal) + `"`,
			} {
				text, _ := ask(p, verb, request)
				for _, secret := range secrets {
					ours := strings.HasPrefix(verb, "agent.") && who.Organisation() == alice.Organisation()           // a card of its own organisation
					pinned := strings.HasPrefix(verb, "session.") && (secret == `"route"` || secret == `"approvers"`) // the transcript says who was asked
					if strings.Contains(text, secret) && !ours && !pinned {
						t.Errorf("%s shows %s %s: %s", verb, who, secret, text)
					}
				}
			}
			for verb, more := range map[string]string{
				api.EscalationClaim.Name: "", api.EscalationRelease.Name: "", api.EscalationAssign.Name: `,"to":"` + string(who) + `"`,
				api.EscalationComment.Name: `,"text":"let it pass"`, api.EscalationTransfer.Name: `,"to":"` + string(who) + `"`,
			} {
				if text, code := ask(p, verb, more); code != session.Unauthorized && code != session.UnknownSession {
					t.Errorf("%s of %s: %s", verb, who, text)
				}
			}
		}
	})
}
