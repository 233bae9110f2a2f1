package oapgateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	lawyer         = performatives.Agent("agent://law.example/counsel")
	counselContext = `{"ccc_version":"1.0","scope_id":"scope_secret","regulatory_classification":"attorney_client_privileged","professional_codes":["bar:de"],
		"fiduciary_duties":["client_confidentiality:de:brao_43a"],"embargo_list":["did:web:widgets.co"],"sanctions_screening":"ofac_eu_un","insider_lists":[]}`
)

// GATEWAYS.md G4, "CCC": a card has it by OAP's schema, only its organisation reads it, it
// bars sessions from both sides without a word why, and a session inherits it.
func TestCCC(t *testing.T) {
	t.Parallel()
	w := newWorld(t, api.Card{Agent: lawyer, CCC: jsontext.Value(counselContext)})
	for path, bad := range map[string]string{
		"/card/ccc":                           `[]`,
		"/card/ccc/ccc_version":               `{"ccc_version":"2.0","scope_id":"s"}`,
		"/card/ccc/scope_id":                  `{"ccc_version":"1.0"}`,
		"/card/ccc/regulatory_classification": `{"ccc_version":"1.0","scope_id":"s","regulatory_classification":"secret"}`,
	} {
		_, err := w.OperatorClient().AddAgent(w.Ctx, api.Card{Agent: "agent://law.example/other", Key: w.signers[lawyer].Key(), CCC: jsontext.Value(bad)})
		if err == nil || !strings.Contains(err.Error(), "schema_invalid") {
			t.Errorf("%s is no fault of %s: %v", path, bad, err)
		}
	}
	if card := w.Send("GET", "/v1/asp/agents/agent:%2F%2Flaw.example%2Fcounsel/card", w.Tokens[alpha], ""); card.StatusCode != http.StatusOK || bytes.Contains(card.Body, []byte("secret")) {
		t.Errorf("another organisation reads the card %d %s", card.StatusCode, card.Body)
	}
	if card := w.Send("GET", "/v1/asp/agents/agent:%2F%2Flaw.example%2Fcounsel/card", w.Tokens[lawyer], ""); !bytes.Contains(card.Body, []byte("scope_secret")) {
		t.Errorf("the organisation itself reads the card %s", card.Body)
	}

	// widgets.co is on the list: whoever invites, the session is refused in the same words.
	invite := func(with performatives.Agent) string { return fmt.Sprintf(`{"with":[%q],"purpose":"p"}`, with) }
	invited, inviting := w.Send("POST", "/v1/asp/sessions", w.Tokens[beta], invite(lawyer)), w.Send("POST", "/v1/asp/sessions", w.Tokens[lawyer], invite(beta))
	for _, a := range []testkit.Answer{inviting, invited} {
		a.Refused(http.StatusUnprocessableEntity, session.ModeViolation)
		if !bytes.Contains(a.Body, []byte(`"details":{"rule":"ccc"}`)) || bytes.Contains(a.Body, []byte("embargo")) {
			t.Errorf("it is refused with %s", a.Body)
		}
	}
	if !bytes.Equal(invited.Body, inviting.Body) {
		t.Errorf("it tells more: %s, %s", invited.Body, inviting.Body)
	}
	w.oap("POST", "open", beta, fmt.Sprintf(`{"to":%q}`, agreement.DIDOf(lawyer))).blocked(http.StatusPreconditionFailed, "precondition_failed")

	// With others it negotiates; the agreement says what binds it, and the log nothing.
	policy := `{"to":"agent://law.example/counsel","policy":{"publish":"terms","categories":["pricing"]}}`
	var opened, s oapState
	w.oap("POST", "open", alpha, policy).Is(http.StatusCreated, &opened)
	proposal := w.proposal(opened.ID, "prp_1", nil, 1, alpha, func(p members) { p["to"] = agreement.DIDOf(lawyer) })
	delete(proposal, "agreement_signature") // it is over a hash without what binds the lawyer
	w.oap("POST", opened.ID+"/propose", alpha, w.signs(proposal, alpha)).Is(http.StatusOK, &s)
	if s = w.stateFor(opened.ID, lawyer); string(s.Publish) != `"hash"` || s.Hash == "" || !bytes.Contains(s.CCC, []byte("attorney_client_privileged")) {
		t.Errorf("GET shows %+v", s)
	}
	w.oap("POST", opened.ID+"/accept", lawyer, w.acceptance("prp_1", s.Hash, lawyer)).Is(http.StatusOK, nil)
	agreed := w.later(opened.ID, alpha, s.Hash)
	agreed.Is(http.StatusOK, nil)
	data, err := performatives.Canonical(agreed.Body)
	testkit.Must(t, err)
	r := agreement.Verify(data, agreement.Trust{Broker: w.Server.Broker.Command.Key()})
	if len(r.Faults) > 0 || len(r.Signed) != 2 || string(r.Document.CCC) != `{"regulatory_classification":"attorney_client_privileged"}` ||
		!bytes.Contains(r.Document.Obligations, []byte(`"fiduciary_duties":["client_confidentiality:de:brao_43a"],"party":"did:web:law.example:counsel"`)) {
		t.Errorf("the agreement is %s, with the faults %v", data, r.Faults)
	}
	id := performatives.SessionID(strings.TrimPrefix(opened.ID, "neg_"))
	if view := w.Send("GET", testkit.SessionPath(id), w.Tokens[alpha], ""); !bytes.Contains(view.Body, []byte(`"ccc":{"regulatory_classification":"attorney_client_privileged"}`)) || bytes.Contains(view.Body, []byte("embargo")) {
		t.Errorf("the view is %s", view.Body)
	}
	w.replays(id, 2)
	entries, err := w.OperatorClient().Transcript(w.Ctx, id)
	testkit.Must(t, err)
	for _, e := range entries {
		if bytes.Contains(e.Bytes, []byte("widgets")) || bytes.Contains(e.Bytes, []byte("scope_secret")) {
			t.Errorf("the transcript tells the list: %s", e.Bytes)
		}
	}
	d := r.Document
	testkit.Eventually(t, "the agreement is in the log", func() bool {
		d, err = w.OperatorClient().Agreement(w.Ctx, api.GetAgreement{Session: id})
		testkit.Must(t, err)
		return d.Log != nil
	})
	if bytes.Contains(d.Log.Leaf, []byte("terms")) {
		t.Errorf("the leaf of a privileged session is %s", d.Log.Leaf)
	}
}

// What an NDA of the other party covers shows to whoever opens a negotiation about it no more
// than a party that has not accepted yet.
func TestSecretCategory(t *testing.T) {
	t.Parallel()
	const discreet = performatives.Agent("agent://discreet.example/sales")
	nda := `{"ccc_version":"1.0","scope_id":"s","active_ndas":[{"id":"nda_1","jurisdiction":"DE","document_hash":"sha256:` + strings.Repeat("0", 64) + `","counterparties":["did:web:client.io"],
		"type":"mutual","covered_categories":["pricing"],"valid_from":"2020-01-01","valid_until":"2999-01-01"}]}`
	w := newWorld(t, api.Card{Agent: discreet, CCC: jsontext.Value(nda)})
	var states []session.Phase
	for _, category := range []string{"pricing", "scheduling"} {
		var opened oapState
		w.oap("POST", "open", alpha, fmt.Sprintf(`{"to":%q,"category":%q}`, discreet, category)).Is(http.StatusCreated, &opened)
		if opened.State != "open" {
			t.Errorf("a negotiation about %s is %s", category, opened.State)
		}
		view, err := w.OperatorClient().View(w.Ctx, performatives.SessionID(strings.TrimPrefix(opened.ID, "neg_")))
		testkit.Must(t, err)
		states = append(states, view.State)
	}
	if states[0] != session.Invited || states[1] != session.Introduced {
		t.Errorf("the sessions are %v", states)
	}
}
