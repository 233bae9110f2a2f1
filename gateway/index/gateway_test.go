package indexgateway_test

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
	"github.com/parley-asp/parley/test/testkit"
)

const cron, seller, other = testkit.Cron, testkit.Seller, testkit.Other

// A world is a broker and agents who speak to it by Index's paths.
type world struct{ *testkit.World }

func newWorld(t *testing.T) world {
	t.Helper()
	return world{testkit.NewHosted(t, testkit.Options{})}
}

// worker is the id of a token.
func worker(token string) string { return strings.Split(token, "_")[1] }

// An answer is one of Index's paths.
type answer struct{ testkit.Answer }

func (w world) index(path, token, body string, change ...func(*http.Request)) answer {
	w.Helper()
	return answer{w.Send("POST", "/api/agents/"+path, token, body, change...)}
}

func (w world) negotiations(token, path, body string) answer {
	w.Helper()
	return w.index(worker(token)+"/negotiations/"+path, token, body)
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
			Number     int     `json:"turnNumber"`
			Agent      string  `json:"agent"`
			Action     string  `json:"action"`
			Message    *string `json:"message"`
			Assessment struct {
				Reasoning string            `json:"reasoning"`
				Roles     map[string]string `json:"suggestedRoles"`
			} `json:"assessment"`
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
	return fmt.Sprintf(`{"action":%q,"message":%q,%s}`, action, message, testkit.Assessed)
}

// says is an answer that is an error in Index's shape.
func (a answer) says(status int) {
	a.Helper()
	var body struct {
		Error string `json:"error"`
	}
	if a.Is(status, &body); body.Error == "" {
		a.Errorf("%d says %s, want {\"error\": …}", status, a.Body)
	}
}

const matchTerms = `"invitationTimeoutMs":600000,"private":{"discoveryQuery":"SECRET cups"},"context":{
	"sourceUser":{"id":"u1","name":"Ann"},"candidateUser":{"id":"u2","name":"Ben"},"indexContext":{"networkId":"n1","prompt":"p"},
	"seedAssessment":{"score":80,"reasoning":"r"},"opportunity":{"id":"o1","reasoning":"r","actors":[]}}`

// An invitation that the candidate's card forbids is declined when it is picked up, and nobody
// learns why.
func TestPickupDeclines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Invite(matchTerms)
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: seller, CCC: jsontext.Value(fmt.Sprintf(`{"ccc_version":"1.0","scope_id":"s","embargo_list":["did:web:%s"]}`, cron.Organisation()))})
	testkit.Must(t, err)
	w.negotiations(w.Tokens[seller], "pickup", "").Is(http.StatusNoContent, nil)
	view := w.Send("GET", testkit.SessionPath(id), w.Tokens[cron], "")
	if !bytes.Contains(view.Body, []byte(`"state":"FAILED"`)) || bytes.Contains(view.Body, []byte("ccc_")) || bytes.Contains(view.Body, []byte("embargo")) {
		t.Errorf("the inviter sees %s", view.Body)
	}
	free := w.Send("POST", "/v1/asp/sessions", w.Tokens[other], fmt.Sprintf(`{"with":[%q],"purpose":"cups","mode":"bilateral/1"}`, seller))
	w.negotiations(w.Tokens[seller], "pickup", "").Is(http.StatusNoContent, nil)
	var opened api.Acceptance
	free.Is(http.StatusCreated, &opened)
	if view := w.Send("GET", testkit.SessionPath(opened.Session), w.Tokens[other], ""); !bytes.Contains(view.Body, []byte(`"state":"INTRODUCED"`)) {
		t.Errorf("of another inviter the invitation is answered with %s", view.Body)
	}
}

// seeds/index-network-negotiation.txt, GATEWAYS.md G3: Index's agents negotiate by their own
// paths, and what is private to the discoverer reaches the other side nowhere.
func TestIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source, candidate := w.Tokens[cron], w.Tokens[seller]
	w.negotiations(source, "pickup", "").Is(http.StatusNoContent, nil)
	id := w.Invite(matchTerms)
	w.negotiations(source, "pickup", "").Is(http.StatusNoContent, nil)
	w.negotiations(candidate, "pickup", "").Is(http.StatusNoContent, nil) // it accepts the invitation

	var n negotiated
	w.negotiations(source, "pickup", "{}").Is(http.StatusOK, &n)
	if n.ID != string(id) || n.Opportunity == nil || n.Opportunity.ID != "o1" || n.Opportunity.Status != "negotiating" || n.Turn.Number != 0 ||
		n.Turn.Deadline == "" || n.Turn.History == nil || n.Turn.Counterparty != "none" || n.Context.Own["name"] != "Ann" || n.Context.Other["name"] != "Ben" ||
		n.Context.Index["networkId"] != "n1" || n.Context.Seed["score"] != 80.0 || !n.Context.Discoverer || n.Context.Query != "SECRET cups" {
		t.Errorf("the source picks up %+v", n)
	}
	respond := string(id) + "/respond"
	for _, bad := range []string{"", "[", `{}`, `{"action":"buy",` + testkit.Assessed + `}`, `{"action":"propose"}`, decides("accept", "x"), `{"action":"propose","assessment":{"reasoning":"r","suggestedRoles":{"ownUser":"boss","otherUser":"peer"}}}`} {
		w.negotiations(source, respond, bad).says(http.StatusBadRequest)
	}
	w.negotiations(candidate, respond, decides("propose", "")).says(http.StatusConflict)
	w.negotiations(w.Tokens[other], respond, decides("propose", "")).says(http.StatusNotFound)
	w.negotiations(source, string(testkit.NewSession())+"/respond", decides("propose", "")).says(http.StatusNotFound)
	w.index(worker(candidate)+"/negotiations/pickup", source, "").says(http.StatusForbidden)
	w.index(worker(source)+"/negotiations/pickup", "", "").says(http.StatusUnauthorized)
	w.index("x", source, "").says(http.StatusNotFound)
	if done := w.negotiations(source, respond, decides("propose", "hello")); done.StatusCode != http.StatusOK || string(done.Body) != `{"success":true}` {
		t.Errorf("propose is answered %d %s", done.StatusCode, done.Body)
	}
	w.negotiations(source, respond, decides("propose", "hello")).says(http.StatusConflict)
	w.negotiations(candidate, respond, decides("accept", "unclaimed")).says(http.StatusConflict)

	n = negotiated{}
	picked := w.negotiations(candidate, "pickup", "")
	picked.Is(http.StatusOK, &n)
	if n.Turn.Number != 1 || n.Turn.Counterparty != "propose" || len(n.Turn.History) != 1 || n.Turn.History[0].Agent != "source" || *n.Turn.History[0].Message != "hello" ||
		n.Context.Own["name"] != "Ben" || n.Context.Other["name"] != "Ann" || n.Context.Discoverer || n.Context.Query != "" {
		t.Errorf("the candidate picks up %+v", n)
	}
	turns := []struct{ token, action string }{{candidate, "question"}, {source, "counter"}, {candidate, "counter"}, {source, "question"}, {candidate, "counter"}, {source, "accept"}}
	for i, turn := range turns {
		var n negotiated
		w.negotiations(turn.token, "pickup", "").Is(http.StatusOK, &n)
		if n.Turn.Number != i+1 || len(n.Turn.History) != i+1 || i > 0 && n.Turn.Counterparty != turns[i-1].action ||
			n.Turn.History[i].Assessment.Reasoning == "" || n.Turn.History[i].Assessment.Roles["ownUser"] == "" {
			t.Errorf("before %s the turn is %+v", turn.action, n.Turn)
		}
		w.negotiations(turn.token, respond, decides(turn.action, "m")).Is(http.StatusOK, nil)
	}
	w.negotiations(candidate, "pickup", "").Is(http.StatusNoContent, nil)
	w.negotiations(candidate, respond, decides("accept", "late")).says(http.StatusConflict)
	view := w.Send("GET", testkit.SessionPath(id), candidate, "")
	if !bytes.Contains(view.Body, []byte(`"hasOpportunity":true`)) || !bytes.Contains(view.Body, []byte(`"status":"pending"`)) {
		t.Errorf("at the end the session is %s", view.Body)
	}
	secret := []byte("SECRET")
	for _, a := range []testkit.Answer{view, picked.Answer, w.Send("GET", testkit.SessionPath(id)+"/messages", source, ""), w.Send("GET", testkit.SessionPath(id), source, ""), w.negotiations(candidate, "pickup", "").Answer} {
		if bytes.Contains(a.Body, secret) {
			t.Errorf("what is private is in %s", a.Body)
		}
	}

	// A delegation that is offered to it waits for the agent itself, and holds up no turn.
	alpha := w.Principal("agent://acme.com/alpha")
	var elsewhere api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[other], fmt.Sprintf(`{"with":[%q],"purpose":"x","mode":"bilateral/1"}`, alpha.Agent)).Is(http.StatusCreated, &elsewhere)
	alpha.Say(elsewhere.Session, &performatives.AcceptBody{ReferenceID: "invitation"})
	w.Send("POST", testkit.SessionPath(elsewhere.Session)+"/messages", w.Tokens[other],
		fmt.Sprintf(`{"performative":"DELEGATE","body":{"targetAgent":%q,"scope":"x","authority":"full"}}`, seller)).Is(http.StatusOK, nil)
	w.Invite(`"invitationTimeoutMs":600000`)
	w.negotiations(candidate, "pickup", "").Is(http.StatusNoContent, nil) // it accepts the invitation
	var waits negotiated
	w.negotiations(source, "pickup", "").Is(http.StatusOK, &waits)
	w.negotiations(source, waits.ID+"/respond", decides("propose", "hello")).Is(http.StatusOK, nil)
	w.negotiations(candidate, "pickup", "").Is(http.StatusOK, nil)
	w.negotiations(candidate, waits.ID+"/respond", decides("reject", "")).Is(http.StatusOK, nil)
	if turn := w.PickUp(candidate); turn.CounterpartyAct != "DELEGATE" || turn.Session != elsewhere.Session {
		t.Errorf("what still waits for it is %+v", turn)
	}

	// A rejection, by the key as Index's plugin sends it.
	id = w.Match()
	w.negotiations(source, "pickup", "").Is(http.StatusOK, nil)
	w.negotiations(source, string(id)+"/respond", decides("propose", "")).Is(http.StatusOK, nil)
	byKey := func(r *http.Request) { r.Header.Set("X-Api-Key", candidate) }
	w.index(worker(candidate)+"/negotiations/pickup", "", "", byKey).Is(http.StatusOK, nil)
	w.index(worker(candidate)+"/negotiations/"+string(id)+"/respond", "", decides("reject", "no"), byKey).Is(http.StatusOK, nil)
	var ended api.SessionView
	if w.Send("GET", testkit.SessionPath(id), source, "").Is(http.StatusOK, &ended); ended.State != session.Closed || ended.Closing != "rejected" {
		t.Errorf("after the rejection the session is %s, %s", ended.State, ended.Closing)
	}
}

// takes says what a side does once it has picked up its turn.
func (w world) takes(id performatives.SessionID, token, decision string) answer {
	w.Helper()
	w.negotiations(token, "pickup", "").Is(http.StatusOK, nil)
	return w.negotiations(token, string(id)+"/respond", decision)
}

// A counter keeps the terms that it does not name.
func TestCounterKeepsTerms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Match()
	offer := func(terms string) string {
		return fmt.Sprintf(`{"performative":"PROPOSE","body":{"proposalId":"p1","type":"x","subject":"s","terms":%s,%s}}`, terms, testkit.Assessed)
	}
	w.Send("POST", testkit.SessionPath(id)+"/messages", w.Tokens[cron], offer(`{"price":500,"days":3}`)).Is(http.StatusOK, nil)
	w.takes(id, w.Tokens[seller], decides("counter", "sooner")).Is(http.StatusOK, nil)
	w.takes(id, w.Tokens[cron], `{"action":"counter","terms":{"days":2},`+testkit.Assessed+`}`).Is(http.StatusOK, nil)
	var view struct {
		Proposals []struct {
			Terms map[string]any `json:"terms"`
		} `json:"proposals"`
	}
	w.Send("GET", testkit.SessionPath(id), w.Tokens[cron], "").Is(http.StatusOK, &view)
	for i, days := range []float64{3, 3, 2} {
		if terms := view.Proposals[i].Terms; terms["price"] != 500.0 || terms["days"] != days || (i > 0) != (terms["assessment"] != nil) {
			t.Errorf("offer %d has %v", i, terms)
		}
	}

}

// COMMITMENTS.md C1, GATEWAYS.md G3: what Index's shape does not show is neither picked up nor agreed to by
// its paths, and holds up nothing else.
func TestUnshownIsNotAgreedTo(t *testing.T) {
	t.Parallel()
	owes := fmt.Sprintf(`{"obligations":[{"party":%q,"action":"deliver","verificationMethod":"by eye"}]}`, seller)
	for name, c := range map[string]struct{ policy, offer string }{
		"publication": {policy: `{"publish":"terms"}`}, "execution": {policy: `{"execution":true}`}, "obligations": {policy: `{"publish":"hash"}`, offer: owes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			source, candidate := w.Tokens[cron], w.Tokens[seller]
			id, state := w.Invite(`"invitationTimeoutMs":600000,"policy":`+c.policy), session.Invited
			w.negotiations(candidate, "pickup", "").Is(http.StatusNoContent, nil)
			if c.offer != "" {
				w.Send("POST", testkit.SessionPath(id)+"/messages", source, fmt.Sprintf(`{"performative":"PROPOSE","body":{"proposalId":"p1","type":"x","subject":"s","terms":%s,%s}}`, c.offer, testkit.Assessed)).Is(http.StatusOK, nil)
				w.negotiations(candidate, "pickup", "").Is(http.StatusNoContent, nil)
				state = session.Conversing
			}
			if turn := w.PickUp(candidate); turn.Session != id || turn.View.State != state {
				t.Errorf("over HTTP the candidate picks up %s, %s", turn.Session, turn.View.State)
			}
			w.negotiations(candidate, string(id)+"/respond", decides("accept", "")).says(http.StatusConflict)
			if c.offer != "" { // which a counter would keep
				w.negotiations(candidate, string(id)+"/respond", decides("counter", "")).says(http.StatusConflict)
			}
			other := w.Match()
			w.takes(other, source, decides("propose", "hello")).Is(http.StatusOK, nil)
			var n negotiated
			if w.negotiations(candidate, "pickup", "").Is(http.StatusOK, &n); n.ID != string(other) {
				t.Errorf("the candidate picks up %s, want %s", n.ID, other)
			}
			w.negotiations(candidate, string(id)+"/respond", decides("reject", "")).Is(http.StatusOK, nil)
		})
	}
}

// An invitation that pickup accepts was accepted for a party that did not see it.
func TestPickupAcceptsInAdvance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Invite(`"invitationTimeoutMs":600000`)
	w.negotiations(w.Tokens[seller], "pickup", "").Is(http.StatusNoContent, nil)
	if said := w.Send("GET", testkit.SessionPath(id)+"/messages", w.Tokens[cron], ""); !bytes.Contains(said.Body, []byte(`"inAdvance":true`)) {
		t.Errorf("the invitation is answered by %s", said.Body)
	}
}

// seeds/index-network-negotiation.txt: accept ends a negotiation, after a question as well. Where
// the policy wants a standing offer, or people confirm, it answers the question.
func TestAcceptAfterQuestion(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{`{}`: "pending", `{"acceptStandingOnly":true}`: "negotiating"} {
		w := newWorld(t)
		id := w.Invite(`"policy":` + policy)
		w.negotiations(w.Tokens[seller], "pickup", "").Is(http.StatusNoContent, nil)
		w.takes(id, w.Tokens[cron], decides("propose", "hello")).Is(http.StatusOK, nil)
		w.takes(id, w.Tokens[seller], decides("question", "when?")).Is(http.StatusOK, nil)
		w.takes(id, w.Tokens[cron], decides("accept", "any time")).Is(http.StatusOK, nil)
		status := func() (s string) {
			var view struct {
				Status string `json:"status"`
			}
			w.Send("GET", testkit.SessionPath(id), w.Tokens[cron], "").Is(http.StatusOK, &view)
			return view.Status
		}
		if got := status(); got != want {
			t.Errorf("with %s it is %s, want %s", policy, got, want)
		}
		if want == "negotiating" { // a counter is a question too, and who asked it decides
			w.takes(id, w.Tokens[seller], decides("counter", "where?")).Is(http.StatusOK, nil)
			w.takes(id, w.Tokens[cron], decides("accept", "here")).says(http.StatusBadRequest)
			w.negotiations(w.Tokens[cron], string(id)+"/respond", decides("propose", "here")).Is(http.StatusOK, nil)
			w.takes(id, w.Tokens[seller], decides("accept", "good")).Is(http.StatusOK, nil)
			if got := status(); got != "pending" {
				t.Errorf("after the accept of a standing offer it is %s", got)
			}
		}
	}
}

// GATEWAYS.md G3: an invitation waits for accept or reject, and its answer is no turn, also where
// an assistant gives it.
func TestIndexInvitation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Invite(matchTerms)
	respond := string(id) + "/respond"
	w.negotiations(w.Tokens[seller], respond, decides("buy", "")).says(http.StatusBadRequest)
	for _, action := range []string{"propose", "counter", "question"} {
		w.negotiations(w.Tokens[seller], respond, decides(action, "")).says(http.StatusConflict)
	}
	said := w.CallTool(w.Tokens[seller], fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"respond_to_negotiation","arguments":{
		"negotiationId":%q,"action":"accept","reasoning":"it fits","suggestedRoles":{"ownUser":"agent","otherUser":"patient"}}}}`, id))
	if !bytes.Contains(said.Body, []byte(`"success":true`)) {
		t.Errorf("the assistant is answered %d %s", said.StatusCode, said.Body)
	}
	var n negotiated
	w.negotiations(w.Tokens[cron], "pickup", "").Is(http.StatusOK, &n)
	if n.Turn.Number != 0 || len(n.Turn.History) != 0 || n.Turn.Counterparty != "none" {
		t.Errorf("after the invitation the turn is %+v", n.Turn)
	}
	if said = w.Send("GET", testkit.SessionPath(id)+"/messages", w.Tokens[cron], ""); bytes.Contains(said.Body, []byte("it fits")) {
		t.Errorf("the answer to the invitation has an assessment: %s", said.Body)
	}
}

// An invitation is answered without an assessment by a worker that has claimed it.
func TestIndexInvitationUnassessed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Invite(matchTerms)
	w.PickUp(w.Tokens[seller])
	w.negotiations(w.Tokens[seller], string(id)+"/respond", `{"action":"reject"}`).Is(http.StatusOK, nil)
	var view api.SessionView
	if w.Send("GET", testkit.SessionPath(id), w.Tokens[cron], "").Is(http.StatusOK, &view); view.State != session.Failed {
		t.Errorf("after the rejection of its invitation the session is %s", view.State)
	}
}
