package oapgateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/test/testkit"
)

// rfc is a proposal as the RFC has it, and nothing more.
func (w world) rfc(id, proposal string, previous any, round int, from, to performatives.Agent) members {
	w.Helper()
	return w.signs(members{
		"proposal_id": proposal, "negotiation_id": id, "previous_proposal_id": previous, "from": agreement.DIDOf(from), "to": agreement.DIDOf(to), "round": round,
		"category": "pricing", "terms": members{
			"action": "weather.forecast.detailed", "price_per_call_eur": "0.0040",
			"conditions": []members{{"if": "calls_per_month >= 100000", "then": members{"price_per_call_eur": "0.0035"}}},
		},
		"valid_until": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	}, from)
}

// GATEWAYS.md G4: the RFC's proposal object is enough. The agreement begins with its
// acceptance, and is signed after that.
func TestRFC(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const penalty = "https://example.com/legal/walk-away.pdf"
	var opened, s oapState
	w.oap("POST", "open", alpha, members{"to": agreement.DIDOf(beta), "category": "pricing", "policy": members{"withdrawal_penalty_terms": penalty, "publish": "terms"}}).Is(http.StatusCreated, &opened)
	id := opened.ID
	w.oap("POST", id+"/propose", alpha, w.rfc(id, "prp_1", nil, 1, alpha, beta)).Is(http.StatusOK, &s)
	w.oap("POST", id+"/propose", beta, w.rfc(id, "prp_2", "prp_1", 2, beta, alpha)).Is(http.StatusOK, &s)
	w.oap("POST", id+"/propose", alpha, w.rfc(id, "prp_3", "prp_2", 3, alpha, beta)).Is(http.StatusOK, &s)
	if s = w.state(id); s.State != "countered" || s.Hash != "" || s.Penalty != penalty || string(s.Publish) != `"terms"` {
		t.Errorf("GET shows %+v", s)
	}
	var draft struct {
		Publish string  `json:"publish"`
		From    *string `json:"effective_from"`
	}
	if w.oap("GET", id+"/draft/prp_3", beta, nil).Is(http.StatusOK, &draft); draft.Publish != "terms" || draft.From != nil {
		t.Errorf("before the acceptance the draft is %+v", draft)
	}
	w.later(id, alpha, "sha256-00").blocked(http.StatusBadRequest, "invalid_input") // nothing is accepted
	w.oap("POST", id+"/accept", beta, members{"proposal_id": "prp_3"}).blocked(http.StatusUnauthorized, "auth_required")
	conditions := []members{{"if": "rate_eur >= 120", "then": "meeting"}}
	accept := w.signs(members{"proposal_id": "prp_3", "conditions": conditions}, beta)
	agreed := w.oap("POST", id+"/accept", beta, accept)
	agreed.Is(http.StatusOK, nil)
	w.oap("POST", id+"/accept", beta, accept).Is(http.StatusOK, nil) // its answer was lost
	w.verifies(agreed.Body, 0)
	if w.oap("GET", id+"/draft/prp_3", beta, nil).Is(http.StatusOK, &draft); draft.From == nil || !bytes.Contains(agreed.Body, []byte(*draft.From)) {
		t.Errorf("once accepted the draft is %+v", draft)
	}
	if s = w.state(id); s.State != "accepted" || s.Hash == "" || len(s.Unsigned) != 2 {
		t.Fatalf("once accepted it is %+v", s)
	}
	if last := s.History[len(s.History)-1]; !bytes.Contains(last.Document, []byte(`"conditions":[{"if":"rate_eur >= 120"`)) {
		t.Errorf("the conditions of the acceptance are not carried: %s", last.Document)
	}
	w.oap("POST", id+"/withdraw", alpha, w.signs(members{}, alpha)).blocked(http.StatusConflict, "conflict")
	w.oap("POST", id+"/propose", beta, w.rfc(id, "prp_4", "prp_3", 4, beta, alpha)).blocked(http.StatusConflict, "conflict")

	w.oap("POST", id+"/sign", alpha, members{}).blocked(http.StatusBadRequest, "invalid_input")
	w.later(id, alpha, "sha256-00").blocked(http.StatusUnauthorized, "auth_required")
	stolen, err := agreement.Sign(w.signers[beta], s.Hash)
	testkit.Must(t, err)
	w.oap("POST", id+"/sign", alpha, members{"agreement_signature": stolen}).blocked(http.StatusUnauthorized, "auth_required")
	w.oap("POST", id+"/sign", other, members{"agreement_signature": stolen}).blocked(http.StatusNotFound, "not_found")
	w.later(id, alpha, s.Hash).Is(http.StatusOK, nil)
	w.later(id, alpha, s.Hash).Is(http.StatusOK, nil) // its answer was lost
	if s = w.state(id); len(s.Unsigned) != 1 || s.Unsigned[0] != agreement.DIDOf(beta) {
		t.Errorf("after one signature it is %+v", s)
	}
	signed := w.later(id, beta, s.Hash)
	signed.Is(http.StatusOK, nil)
	w.later(id, beta, s.Hash).Is(http.StatusOK, nil) // its answer was lost
	w.verifies(signed.Body, 2)
	session := performatives.SessionID(strings.TrimPrefix(id, "neg_"))
	view, err := w.OperatorClient().View(w.Ctx, session)
	if err != nil || view.State.String() != "CLOSED" || view.Closing != "accepted" {
		t.Errorf("the session is %s %s, %v", view.State, view.Closing, err)
	}
	w.replays(session, 4)
	testkit.Eventually(t, "the terms are in the log, as both agreed", func() bool {
		d, err := w.OperatorClient().Agreement(w.Ctx, api.GetAgreement{Session: session})
		return err == nil && d.Log != nil && bytes.Contains(d.Log.Leaf, []byte("weather.forecast.detailed"))
	})
}

// A hosted agent without a key of its own accepts the RFC's proposal on another face, by the move that it is offered. Its
// signature over the agreement follows at once.
func TestHostedAcceptsRFC(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var opened, s oapState
	w.oap("POST", "open", alpha, members{"to": agreement.DIDOf(seller), "category": "pricing"}).Is(http.StatusCreated, &opened)
	id := performatives.SessionID(strings.TrimPrefix(opened.ID, "neg_"))
	accepts := func() {
		t.Helper()
		var now api.Snapshot
		w.Send("GET", testkit.SessionPath(id)+"/snapshot", w.Tokens[seller], "").Is(http.StatusOK, &now)
		i := slices.IndexFunc(now.Moves, func(m api.Move) bool { return m.Performative == "ACCEPT" })
		if i < 0 || len(now.Moves[i].Fill) > 0 {
			t.Fatalf("its moves are %+v", now.Moves)
		}
		w.Send("POST", testkit.SessionPath(id)+"/messages", w.Tokens[seller], fmt.Sprintf(`{"performative":"ACCEPT","body":%s}`, now.Moves[i].Body)).Is(http.StatusOK, nil)
	}
	accepts()
	w.oap("POST", opened.ID+"/propose", alpha, w.rfc(opened.ID, "prp_1", nil, 1, alpha, seller)).Is(http.StatusOK, nil)
	accepts()
	if s = w.stateFor(opened.ID, alpha); s.State != "accepted" || len(s.Unsigned) != 1 || s.Unsigned[0] != agreement.DIDOf(alpha) {
		t.Fatalf("once accepted it is %+v", s)
	}
	signed := w.later(opened.ID, alpha, s.Hash)
	signed.Is(http.StatusOK, nil)
	w.verifies(signed.Body, 2)
	w.replays(id, 2)
}

// A pricing entry of a manifest, as it stands, is an opening proposal, and no counter-proposal (RFC-0002, section 4).
func TestPricingEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.opens()
	entry := func(proposal string, previous any) members {
		p := w.rfc(id, proposal, previous, 1, alpha, beta)
		p["terms"] = members{"model": "per_call", "action_id": "weather.forecast.detailed", "amount": "0.0040", "currency": "EUR", "billing": members{"interval": "month"}}
		delete(p, "signature")
		return w.signs(p, alpha)
	}
	w.oap("POST", id+"/propose", alpha, entry("prp_1", "prp_0")).blocked(http.StatusConflict, "conflict")
	w.oap("POST", id+"/propose", alpha, entry("prp_1", nil)).Is(http.StatusOK, nil)
	w.oap("POST", id+"/accept", beta, w.signs(members{"proposal_id": "prp_1"}, beta)).Is(http.StatusOK, nil)
}

// verifies checks an agreement offline, and who has signed it.
func (w world) verifies(body []byte, signed int) {
	w.Helper()
	data, err := performatives.Canonical(body)
	testkit.Must(w, err)
	if r := agreement.Verify(data, agreement.Trust{Broker: w.Server.Broker.Command.Key()}); len(r.Faults) > 0 || len(r.Signed) != signed {
		w.Errorf("the agreement has the faults %v, signed by %v: %s", r.Faults, r.Signed, data)
	}
}

// GATEWAYS.md G4: what the opener alone has asked for is not published, where the other party
// has proposed and accepted nothing.
func TestPublishNeedsBoth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var opened oapState
	w.oap("POST", "open", alpha, members{"to": agreement.DIDOf(beta), "policy": members{"publish": "terms"}}).Is(http.StatusCreated, &opened)
	w.oap("POST", opened.ID+"/propose", beta, w.rfc(opened.ID, "prp_1", nil, 1, beta, alpha)).Is(http.StatusOK, nil)
	w.oap("POST", opened.ID+"/accept", alpha, w.signs(members{"proposal_id": "prp_1"}, alpha)).Is(http.StatusOK, nil)
	testkit.Eventually(t, "the agreement is in the log without its terms", func() bool {
		d, err := w.OperatorClient().Agreement(w.Ctx, api.GetAgreement{Session: performatives.SessionID(strings.TrimPrefix(opened.ID, "neg_"))})
		return err == nil && d.Log != nil && !bytes.Contains(d.Log.Leaf, []byte("terms"))
	})
}

// GATEWAYS.md G4: the DID of the agent's own host is registered on the operator's word, and
// names the party; the document of a party with its own key has that key alone.
func TestHostDID(t *testing.T) {
	t.Parallel()
	const agent, did = performatives.Agent("agent://agent-a.example/bot"), "did:web:agent-a.example"
	w := newWorld(t, api.Card{Agent: agent, Registry: api.Registry{DID: did}})
	var opened oapState
	w.oap("POST", "open", beta, members{"to": did}).Is(http.StatusCreated, &opened)
	p := w.rfc(opened.ID, "prp_1", nil, 1, agent, beta)
	p["from"] = did
	w.oap("POST", opened.ID+"/propose", agent, w.signs(p, agent)).Is(http.StatusOK, nil)
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: "agent://agent-a.example/other", Key: w.signers[agent].Key(), Registry: api.Registry{DID: did}})
	if err == nil {
		t.Error("a second agent of the host has its DID")
	}
	document := w.Send("GET", fmt.Sprintf("/did/%s/did.json", agent.Token()), "", "")
	if document.StatusCode != http.StatusOK || !bytes.Contains(document.Body, []byte("#key")) || bytes.Contains(document.Body, []byte("#hosted")) {
		t.Errorf("the document is %d %s", document.StatusCode, document.Body)
	}
}
