package httpgateway_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// GATEWAYS.md G9: checks have endpoints, for hosted callers and for those who sign for themselves. A check
// is answered with acts, which the installation signs for hosted agents only.
func TestChecks(t *testing.T) {
	t.Parallel()
	const lawyer, signer = performatives.Agent("agent://acme.com/lawyer"), performatives.Agent("agent://acme.com/signer")
	w := testkit.NewHosted(t, testkit.Options{})
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: lawyer, Name: "Lawyer"})
	testkit.Must(t, err)
	w.Principal(signer)
	hosted, signs := w.Token(api.AddToken{Agent: lawyer}), w.Token(api.AddToken{Agent: signer})
	id := w.Match()
	at := testkit.SessionPath(id) + "/messages"
	of := map[string]api.Acceptance{}
	for name, who := range map[string]performatives.Agent{hosted: lawyer, signs: signer} {
		var a api.Acceptance
		w.Send("POST", at, w.Tokens[testkit.Cron], fmt.Sprintf(`{"performative":"DELEGATE","body":{"targetAgent":%q,"scope":"check the terms","authority":"advisory"}}`, who)).Is(http.StatusOK, &a)
		of[name] = a
	}
	for token, delegated := range of {
		var list api.Checks
		w.Send("GET", "/v1/asp/checks", token, "").Is(http.StatusOK, &list)
		if len(list.Checks) != 1 || list.Checks[0].Session != id || string(list.Checks[0].ID) != string(delegated.Message) || !list.Checks[0].Awaiting {
			t.Fatalf("the checks are %+v", list)
		}
		var check api.Check
		w.Send("GET", "/v1/asp/checks/"+string(id), token, "").Is(http.StatusOK, &check)
		if check.Scope != "check the terms" || check.Status != "offered" {
			t.Errorf("the check is %+v", check)
		}
	}
	accept := func(token string) string {
		return fmt.Sprintf(`{"performative":"ACCEPT","body":{"referenceId":%q}}`, of[token].Message)
	}
	w.Send("POST", at, signs, accept(signs)).Refused(http.StatusForbidden, session.Unauthorized)
	w.Send("POST", at, hosted, accept(hosted)).Is(http.StatusOK, nil)
	w.Send("POST", at, hosted, `{"performative":"INFORM","body":{"type":"result","data":{"assessment":"fine"}}}`).Is(http.StatusOK, nil)
	var done api.Check
	if w.Send("GET", "/v1/asp/checks/"+string(id), hosted, "").Is(http.StatusOK, &done); done.Result == 0 || done.Awaiting {
		t.Errorf("once answered the check is %+v", done)
	}
	w.Send("GET", "/v1/asp/checks?status=odd", hosted, "").Refused(http.StatusBadRequest, session.MalformedEnvelope)
	w.Send("GET", "/v1/asp/checks/"+string(id), w.Tokens[testkit.Seller], "").Refused(http.StatusNotFound, session.UnknownSession)
	w.Send("GET", "/v1/asp/checks/nothing", hosted, "").Refused(http.StatusNotFound, session.UnknownSession)
	w.Send("GET", "/v1/asp/checks", "", "").Refused(http.StatusUnauthorized, session.Unauthorized)
}
