package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// worker is the id of a token.
func worker(token string) string { return strings.Split(token, "_")[1] }

func (w httpWorld) negotiations(token, path, body string) answer {
	w.Helper()
	return w.send("POST", "/api/agents/"+worker(token)+"/negotiations/"+path, token, body)
}

// negotiated is a turn as Index's plugin reads it.
type negotiated struct {
	ID          string `json:"negotiationId"`
	Task        string `json:"taskId"`
	Opportunity *struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	} `json:"opportunity"`
	Turn struct {
		Number   int    `json:"number"`
		Deadline string `json:"deadline"`
		History  []struct {
			Number  int     `json:"turnNumber"`
			Agent   string  `json:"agent"`
			Action  string  `json:"action"`
			Message *string `json:"message"`
		} `json:"history"`
		Counterparty string `json:"counterpartyAction"`
	} `json:"turn"`
	Context struct {
		Own        map[string]any `json:"ownUser"`
		Other      map[string]any `json:"otherUser"`
		Index      map[string]any `json:"indexContext"`
		Seed       map[string]any `json:"seedAssessment"`
		Discoverer bool           `json:"isDiscoverer"`
		Query      string         `json:"discoveryQuery"`
	} `json:"context"`
}

func decides(action, message string) string {
	return fmt.Sprintf(`{"action":%q,"message":%q,%s}`, action, message, assessed)
}

// says is an answer that is an error in Index's shape.
func (a answer) says(status int) {
	a.Helper()
	var body struct {
		Error string `json:"error"`
	}
	if a.is(status, &body); body.Error == "" {
		a.Errorf("%d says %s, want {\"error\": …}", status, a.body)
	}
}

const matchTerms = `"invitationTimeoutMs":600000,"private":{"discoveryQuery":"SECRET cups"},"context":{
	"sourceUser":{"id":"u1","name":"Ann"},"candidateUser":{"id":"u2","name":"Ben"},"indexContext":{"networkId":"n1","prompt":"p"},
	"seedAssessment":{"score":80,"reasoning":"r"},"opportunity":{"id":"o1","reasoning":"r","actors":[]}}`

// seeds/index-network-negotiation.txt, GATEWAYS.md G3: Index's agents negotiate by their own
// paths, and what is private to the discoverer reaches the other side nowhere.
func TestIndex(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	source, candidate := w.tokens[cron], w.tokens[seller]
	w.negotiations(source, "pickup", "").is(http.StatusNoContent, nil)
	id := w.invites(matchTerms)
	w.negotiations(source, "pickup", "").is(http.StatusNoContent, nil)
	w.negotiations(candidate, "pickup", "").is(http.StatusNoContent, nil) // it accepts the invitation

	var n negotiated
	w.negotiations(source, "pickup", "{}").is(http.StatusOK, &n)
	if n.ID != string(id) || n.Opportunity == nil || n.Opportunity.ID != "o1" || n.Opportunity.Status != "negotiating" || n.Turn.Number != 0 ||
		n.Turn.Deadline == "" || n.Turn.History == nil || n.Turn.Counterparty != "none" || n.Context.Own["name"] != "Ann" || n.Context.Other["name"] != "Ben" ||
		n.Context.Index["networkId"] != "n1" || n.Context.Seed["score"] != 80.0 || !n.Context.Discoverer || n.Context.Query != "SECRET cups" {
		t.Errorf("the source picks up %+v", n)
	}
	respond := string(id) + "/respond"
	for _, bad := range []string{"", "[", `{}`, `{"action":"buy",` + assessed + `}`, `{"action":"propose"}`, decides("accept", "x"), `{"action":"propose","assessment":{"reasoning":"r","suggestedRoles":{"ownUser":"boss","otherUser":"peer"}}}`} {
		w.negotiations(source, respond, bad).says(http.StatusBadRequest)
	}
	w.negotiations(candidate, respond, decides("propose", "")).says(http.StatusConflict)
	w.negotiations(w.tokens[other], respond, decides("propose", "")).says(http.StatusNotFound)
	w.negotiations(source, string(testkit.NewSession())+"/respond", decides("propose", "")).says(http.StatusNotFound)
	w.send("POST", "/api/agents/"+worker(candidate)+"/negotiations/pickup", source, "").says(http.StatusForbidden)
	w.send("POST", "/api/agents/"+worker(source)+"/negotiations/pickup", "", "").says(http.StatusUnauthorized)
	w.send("POST", "/api/agents/x", source, "").says(http.StatusNotFound)
	if done := w.negotiations(source, respond, decides("propose", "hello")); done.status != http.StatusOK || string(done.body) != `{"success":true}` {
		t.Errorf("propose is answered %d %s", done.status, done.body)
	}
	w.negotiations(source, respond, decides("propose", "hello")).says(http.StatusConflict)
	w.negotiations(candidate, respond, decides("accept", "unclaimed")).says(http.StatusConflict)

	n = negotiated{}
	picked := w.negotiations(candidate, "pickup", "")
	picked.is(http.StatusOK, &n)
	if n.Turn.Number != 1 || n.Turn.Counterparty != "propose" || len(n.Turn.History) != 1 || n.Turn.History[0].Agent != "source" || *n.Turn.History[0].Message != "hello" ||
		n.Context.Own["name"] != "Ben" || n.Context.Other["name"] != "Ann" || n.Context.Discoverer || n.Context.Query != "" {
		t.Errorf("the candidate picks up %+v", n)
	}
	turns := []struct{ token, action string }{{candidate, "question"}, {source, "accept"}, {candidate, "counter"}, {source, "question"}, {candidate, "counter"}, {source, "accept"}}
	for i, turn := range turns {
		var n negotiated
		w.negotiations(turn.token, "pickup", "").is(http.StatusOK, &n)
		if n.Turn.Number != i+1 || len(n.Turn.History) != i+1 || i > 0 && n.Turn.Counterparty != turns[i-1].action {
			t.Errorf("before %s the turn is %+v", turn.action, n.Turn)
		}
		w.negotiations(turn.token, respond, decides(turn.action, "m")).is(http.StatusOK, nil)
	}
	w.negotiations(candidate, "pickup", "").is(http.StatusNoContent, nil)
	w.negotiations(candidate, respond, decides("accept", "late")).says(http.StatusConflict)
	view := w.send("GET", sessionPath(id), candidate, "")
	if !bytes.Contains(view.body, []byte(`"hasOpportunity":true`)) || !bytes.Contains(view.body, []byte(`"status":"pending"`)) {
		t.Errorf("at the end the session is %s", view.body)
	}
	secret := []byte("SECRET")
	for _, a := range []answer{view, picked, w.send("GET", sessionPath(id)+"/messages", source, ""), w.send("GET", sessionPath(id), source, ""), w.negotiations(candidate, "pickup", "")} {
		if bytes.Contains(a.body, secret) {
			t.Errorf("what is private is in %s", a.body)
		}
	}

	// A delegation that is offered to it waits for the agent itself, and holds up no turn.
	alpha := w.Principal("agent://acme.com/alpha")
	var elsewhere api.Acceptance
	w.send("POST", "/v1/asp/sessions", w.tokens[other], fmt.Sprintf(`{"with":[%q],"purpose":"x","mode":"bilateral/1"}`, alpha.Agent)).is(http.StatusCreated, &elsewhere)
	alpha.Say(elsewhere.Session, &performatives.AcceptBody{ReferenceID: "invitation"})
	w.send("POST", sessionPath(elsewhere.Session)+"/messages", w.tokens[other],
		fmt.Sprintf(`{"performative":"DELEGATE","body":{"targetAgent":%q,"scope":"x","authority":"full"}}`, seller)).is(http.StatusOK, nil)
	w.invites(`"invitationTimeoutMs":600000`)
	w.negotiations(candidate, "pickup", "").is(http.StatusNoContent, nil) // it accepts the invitation
	var waits negotiated
	w.negotiations(source, "pickup", "").is(http.StatusOK, &waits)
	w.negotiations(source, waits.ID+"/respond", decides("propose", "hello")).is(http.StatusOK, nil)
	w.negotiations(candidate, "pickup", "").is(http.StatusOK, nil)
	w.negotiations(candidate, waits.ID+"/respond", decides("reject", "")).is(http.StatusOK, nil)
	if turn := w.pickup(candidate); turn.CounterpartyAct != "DELEGATE" || turn.Session != elsewhere.Session {
		t.Errorf("what still waits for it is %+v", turn)
	}

	// A rejection, by the key as Index's plugin sends it.
	id = w.match()
	w.negotiations(source, "pickup", "").is(http.StatusOK, nil)
	w.negotiations(source, string(id)+"/respond", decides("propose", "")).is(http.StatusOK, nil)
	byKey := func(r *http.Request) { r.Header.Set("X-Api-Key", candidate) }
	w.send("POST", "/api/agents/"+worker(candidate)+"/negotiations/pickup", "", "", byKey).is(http.StatusOK, nil)
	w.send("POST", "/api/agents/"+worker(candidate)+"/negotiations/"+string(id)+"/respond", "", decides("reject", "no"), byKey).is(http.StatusOK, nil)
	var ended api.SessionView
	if w.send("GET", sessionPath(id), source, "").is(http.StatusOK, &ended); ended.State != session.Closed || ended.Closing != "rejected" {
		t.Errorf("after the rejection the session is %s, %s", ended.State, ended.Closing)
	}
}

// GATEWAYS.md G3: an invitation waits for accept or reject, and its answer is no turn, also where
// an assistant gives it.
func TestIndexInvitation(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	id := w.invites(matchTerms)
	respond := string(id) + "/respond"
	w.negotiations(w.tokens[seller], respond, decides("buy", "")).says(http.StatusBadRequest)
	for _, action := range []string{"propose", "counter", "question"} {
		w.negotiations(w.tokens[seller], respond, decides(action, "")).says(http.StatusConflict)
	}
	w.assistant(w.tokens[seller]).does("respond_to_negotiation", anything{
		"negotiationId": id, "action": "accept", "reasoning": "it fits", "suggestedRoles": anything{"ownUser": "agent", "otherUser": "patient"},
	}, nil)
	var n negotiated
	w.negotiations(w.tokens[cron], "pickup", "").is(http.StatusOK, &n)
	if n.Turn.Number != 0 || len(n.Turn.History) != 0 || n.Turn.Counterparty != "none" {
		t.Errorf("after the invitation the turn is %+v", n.Turn)
	}
	if said := w.send("GET", sessionPath(id)+"/messages", w.tokens[cron], ""); bytes.Contains(said.body, []byte("it fits")) {
		t.Errorf("the answer to the invitation has an assessment: %s", said.body)
	}
}

// An invitation is answered without an assessment by a worker that has claimed it.
func TestIndexInvitationUnassessed(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	id := w.invites(matchTerms)
	w.pickup(w.tokens[seller])
	w.negotiations(w.tokens[seller], string(id)+"/respond", `{"action":"reject"}`).is(http.StatusOK, nil)
	var view api.SessionView
	if w.send("GET", sessionPath(id), w.tokens[cron], "").is(http.StatusOK, &view); view.State != session.Failed {
		t.Errorf("after the rejection of its invitation the session is %s", view.State)
	}
}
