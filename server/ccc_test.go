package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
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
	w := newOAPWorld(t, api.Card{Agent: lawyer, CCC: jsontext.Value(counselContext)})
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
	if card := w.send("GET", "/v1/asp/agents/agent:%2F%2Flaw.example%2Fcounsel/card", w.tokens[alpha], ""); card.status != http.StatusOK || bytes.Contains(card.body, []byte("secret")) {
		t.Errorf("another organisation reads the card %d %s", card.status, card.body)
	}
	if card := w.send("GET", "/v1/asp/agents/agent:%2F%2Flaw.example%2Fcounsel/card", w.tokens[lawyer], ""); !bytes.Contains(card.body, []byte("scope_secret")) {
		t.Errorf("the organisation itself reads the card %s", card.body)
	}

	// widgets.co is on the list: whoever invites, the session is refused in the same words.
	invite := func(with performatives.Agent) string { return fmt.Sprintf(`{"with":[%q],"purpose":"p"}`, with) }
	theirs, ours := w.send("POST", "/v1/asp/sessions", w.tokens[beta], invite(lawyer)), w.send("POST", "/v1/asp/sessions", w.tokens[lawyer], invite(beta))
	for _, a := range []answer{theirs, ours} {
		a.refused(http.StatusUnprocessableEntity, session.ModeViolation)
		if !bytes.Contains(a.body, []byte(`"details":{"rule":"ccc"}`)) || bytes.Contains(a.body, []byte("embargo")) {
			t.Errorf("it is refused with %s", a.body)
		}
	}
	if !bytes.Equal(theirs.body, ours.body) {
		t.Errorf("it tells more: %s, %s", theirs.body, ours.body)
	}
	w.oap("POST", "open", beta, fmt.Sprintf(`{"to":%q}`, agreement.DIDOf(lawyer))).blocked(http.StatusPreconditionFailed, "precondition_failed")

	// With others it negotiates; the agreement says what binds it, and the log nothing.
	policy := `{"to":"agent://law.example/counsel","policy":{"publish":"terms","categories":["pricing"]}}`
	var opened, s oapState
	w.oap("POST", "open", alpha, policy).is(http.StatusCreated, &opened)
	proposal := w.proposal(opened.ID, "prp_1", nil, 1, alpha, func(p members) { p["to"] = agreement.DIDOf(lawyer) })
	unsigned := w.oap("POST", opened.ID+"/propose", alpha, w.signs(changed(proposal, "agreement_signature", ""), alpha))
	_, said, _ := strings.Cut(string(unsigned.body), "agreement_hash ")
	said, _, _ = strings.Cut(said, `"`)
	signature, err := agreement.Sign(w.signers[alpha], agreement.Digest(said))
	testkit.Must(t, err)
	w.oap("POST", opened.ID+"/propose", alpha, w.signs(changed(proposal, "agreement_signature", signature), alpha)).is(http.StatusOK, &s)
	agreed := w.oap("POST", opened.ID+"/accept", lawyer, w.acceptance("prp_1", s.Hash, lawyer))
	agreed.is(http.StatusOK, nil)
	data, err := performatives.Canonical(agreed.body)
	testkit.Must(t, err)
	r := agreement.Verify(data, agreement.Trust{Broker: w.Key()})
	if len(r.Faults) > 0 || len(r.Signed) != 2 || string(r.Document.CCC) != `{"regulatory_classification":"attorney_client_privileged"}` ||
		!bytes.Contains(r.Document.Obligations, []byte(`"fiduciary_duties":["client_confidentiality:de:brao_43a"],"party":"did:web:law.example:counsel"`)) {
		t.Errorf("the agreement is %s, with the faults %v", data, r.Faults)
	}
	id := performatives.SessionID(strings.TrimPrefix(opened.ID, "neg_"))
	if view := w.send("GET", sessionPath(id), w.tokens[alpha], ""); !bytes.Contains(view.body, []byte(`"ccc":{"regulatory_classification":"attorney_client_privileged"}`)) || bytes.Contains(view.body, []byte("embargo")) {
		t.Errorf("the view is %s", view.body)
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
	for d.Log == nil {
		d, err = w.OperatorClient().Agreement(w.Ctx, api.GetAgreement{Session: id})
		testkit.Must(t, err)
	}
	if bytes.Contains(d.Log.Leaf, []byte("terms")) {
		t.Errorf("the leaf of a privileged session is %s", d.Log.Leaf)
	}
}
