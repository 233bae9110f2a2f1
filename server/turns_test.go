package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

const (
	assessed = `"assessment":{"reasoning":"it fits","suggestedRoles":{"ownUser":"patient","otherUser":"agent"}}`
	proposes = `{"performative":"PROPOSE","body":{"proposalId":"p1","type":"service-agreement","subject":"cups","terms":{"price":5}},` + assessed + `}`
	accepts  = `{"performative":"ACCEPT","body":{"referenceId":"p1"},"message":"thanks",` + assessed + `}`
)

// match opens a bilateral session of cron with seller, who accepts the invitation.
func (w httpWorld) match() performatives.SessionID {
	w.Helper()
	id := w.invites(`"invitationTimeoutMs":600000`)
	w.send("POST", sessionPath(id)+"/messages", w.tokens[seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).is(http.StatusOK, nil)
	return id
}

func (w httpWorld) invites(terms string) performatives.SessionID {
	w.Helper()
	var opened api.Acceptance
	w.send("POST", "/v1/asp/sessions", w.tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"buy cups","mode":"bilateral/1","terms":{%s}}`, seller, terms)).
		is(http.StatusCreated, &opened)
	return opened.Session
}

func sessionPath(id performatives.SessionID) string { return "/v1/asp/sessions/" + string(id) }

// pickup picks up a turn that must be there.
func (w httpWorld) pickup(token string) (turn api.Turn) {
	w.Helper()
	w.send("POST", "/v1/asp/turns/pickup", token, `{}`).is(http.StatusOK, &turn)
	return turn
}

// nothing asserts that nothing waits for a worker.
func (w httpWorld) nothing(token string) {
	w.Helper()
	if a := w.send("POST", "/v1/asp/turns/pickup", token, ""); a.status != http.StatusNoContent || len(a.body) > 0 {
		w.Errorf("pickup is answered %d %s, want 204", a.status, a.body)
	}
}

func (w httpWorld) respond(id, token, body string) answer {
	w.Helper()
	return w.send("POST", "/v1/asp/turns/"+id+"/respond", token, body)
}

// GATEWAYS.md G3: a turn is picked up, claimed by one worker, and answered; every refusal has
// its status, and the claim stays when the protocol refuses.
func TestTurns(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	second := w.token(api.AddToken{Agent: seller, Name: "second"})
	w.nothing(w.tokens[cron])
	id := w.invites(`"invitationTimeoutMs":600000,"seedAssessment":{"score":80}`)
	invited := w.pickup(w.tokens[seller])
	if invited.Session != id || invited.CounterpartyAct != "PROPOSE" || invited.Reference != "invitation" || invited.View.State != session.Invited {
		t.Errorf("the invitation waits as %+v", invited)
	}
	w.respond(invited.Claim.ID, w.tokens[seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).is(http.StatusOK, nil)

	first := w.pickup(w.tokens[cron])
	if first.Session != id || first.Mode != "bilateral/1" || first.Turn.Number != 0 || first.Turn.Cap != 0 || first.CounterpartyAct != "none" ||
		len(first.History) != 2 || !strings.Contains(string(first.Terms), "buy cups") || string(first.SeedAssessment) != `{"score":80}` || first.Claim.Until == "" || first.Turn.Deadline == "" {
		t.Errorf("the first turn is %+v", first)
	}
	w.nothing(w.tokens[seller])
	w.respond(first.Claim.ID, w.tokens[cron], strings.Replace(proposes, `"it fits"`, `""`, 1)).refused(http.StatusUnprocessableEntity, session.SchemaInvalid)
	w.respond(first.Claim.ID, w.tokens[cron], accepts).refused(http.StatusUnprocessableEntity, session.WrongState)
	w.respond(first.Claim.ID, w.tokens[cron], `{}`).refused(http.StatusBadRequest, session.MalformedEnvelope)
	if again := w.pickup(w.tokens[cron]); *again.Claim != *first.Claim || *again.Turn != *first.Turn {
		t.Errorf("after what was refused the claim is %+v %+v, it was %+v %+v", again.Claim, again.Turn, first.Claim, first.Turn)
	}
	stranger, none := w.respond(first.Claim.ID, w.tokens[other], proposes), w.respond(string(testkit.NewID()), w.tokens[other], proposes)
	if stranger.refused(http.StatusNotFound, session.UnknownSession); !bytes.Equal(stranger.body, none.body) {
		t.Errorf("a stranger learns that a claim is there:\n%s\n%s", stranger.body, none.body)
	}
	w.respond(first.Claim.ID, w.tokens[seller], proposes).refused(http.StatusForbidden, session.Unauthorized)
	var proposed, again api.Acceptance
	w.respond(first.Claim.ID, w.tokens[cron], proposes).is(http.StatusOK, &proposed)
	w.respond(first.Claim.ID, w.tokens[cron], proposes).is(http.StatusOK, &again)
	if proposed.Duplicate || !again.Duplicate || again.Message != proposed.Message {
		t.Errorf("the same response again is answered %+v, the first %+v", again, proposed)
	}
	w.respond(first.Claim.ID, w.tokens[cron], strings.Replace(proposes, "5", "6", 1)).refused(http.StatusConflict, session.WrongTurn)
	w.nothing(w.tokens[cron])

	turn := w.pickup(w.tokens[seller])
	if turn.Turn.Number != 1 || turn.CounterpartyAct != "PROPOSE" || turn.Reference != "p1" || turn.Claim.ID == first.Claim.ID {
		t.Errorf("the second turn is %+v", turn)
	}
	w.nothing(second)
	w.respond(turn.Claim.ID, second, accepts).refused(http.StatusConflict, session.WrongTurn)
	w.respond(string(id), second, accepts).refused(http.StatusConflict, session.WrongTurn)
	w.send("POST", "/v1/asp/turns/"+turn.Claim.ID+"/release", second, "").refused(http.StatusConflict, session.WrongTurn)
	w.send("POST", "/v1/asp/turns/"+turn.Claim.ID+"/release", w.tokens[seller], "").is(http.StatusOK, nil)
	w.respond(turn.Claim.ID, w.tokens[seller], accepts).refused(http.StatusConflict, session.WrongTurn)
	if moved := w.pickup(second); moved.Claim.ID != turn.Claim.ID {
		t.Errorf("a released turn waits as %+v", moved)
	}
	w.respond(string(id), second, accepts).is(http.StatusOK, &again)
	if again.State != session.Closed {
		t.Errorf("the ACCEPT leaves the session %s", again.State)
	}
	w.nothing(second)
	w.send("POST", "/v1/asp/turns/pickup", second, `{"worker":"x"}`).refused(http.StatusBadRequest, session.MalformedEnvelope)
	readOnly := w.token(api.AddToken{Agent: seller, ReadOnly: true})
	w.send("POST", "/v1/asp/turns/pickup", readOnly, "").refused(http.StatusForbidden, session.Unauthorized)
}

// A claim ends, by the lease or the timeout, and the turn waits again; the same worker that
// asks again extends nothing. The oldest turn comes first.
func TestTurnsClaimsEnd(t *testing.T) {
	t.Parallel()
	clock := &testkit.Clock{}
	w := newHTTPWorld(t, testkit.Options{Now: clock.Now, Claim: time.Minute})
	second := w.token(api.AddToken{Agent: cron, Name: "second"})
	oldest := w.match()
	clock.Advance(time.Second)
	newest := w.match()
	var leased api.Turn
	w.send("POST", "/v1/asp/turns/pickup", w.tokens[cron], `{"leaseMs":5000,"modes":["bilateral/1"]}`).is(http.StatusOK, &leased)
	other := w.pickup(second)
	if leased.Session != oldest || other.Session != newest {
		t.Errorf("the turns come as %s, %s; they wait since %s, %s", leased.Session, other.Session, oldest, newest)
	}
	w.send("POST", "/v1/asp/turns/pickup", w.tokens[cron], `{"modes":["asp/1"]}`).is(http.StatusNoContent, nil)
	clock.Advance(4 * time.Second)
	if again := w.pickup(w.tokens[cron]); *again.Claim != *leased.Claim {
		t.Errorf("the claim is %+v, it was %+v", again.Claim, leased.Claim)
	}
	clock.Advance(time.Second)
	w.respond(leased.Claim.ID, w.tokens[cron], proposes).refused(http.StatusConflict, session.WrongTurn)
	clock.Advance(54 * time.Second)
	if again := w.pickup(second); again.Session != newest {
		t.Errorf("before its timeout the claim of %s is lost for %s", newest, again.Session)
	}
	clock.Advance(time.Second)
	if again := w.pickup(second); again.Session != oldest {
		t.Errorf("after its timeout the worker has %s, not the oldest turn", again.Session)
	}
	if again := w.pickup(w.tokens[cron]); again.Session != newest {
		t.Errorf("the turn of %s does not wait again", newest)
	}
}

// Of workers that race for one turn one gets it; claims and responses outlive restarts.
func TestTurnsRaces(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	const workers = 8
	tokens := []string{w.tokens[cron]}
	for len(tokens) < workers {
		tokens = append(tokens, w.token(api.AddToken{Agent: cron}))
	}
	id := w.match()
	answers := make([]answer, workers)
	together(workers, func(i int) { answers[i] = w.send("POST", "/v1/asp/turns/pickup", tokens[i], "") })
	winner := -1
	for i, a := range answers {
		switch {
		case a.status == http.StatusOK && winner < 0:
			winner = i
		case a.status != http.StatusNoContent:
			t.Errorf("worker %d is answered %d %s", i, a.status, a.body)
		}
	}
	if winner < 0 {
		t.Fatal("nobody got the turn")
	}
	var turn api.Turn
	answers[winner].is(http.StatusOK, &turn)

	w.Down()
	w.Up()
	if again := w.pickup(tokens[winner]); *again.Claim != *turn.Claim || *again.Turn != *turn.Turn {
		t.Errorf("after a restart the claim is %+v %+v, it was %+v %+v", again.Claim, again.Turn, turn.Claim, turn.Turn)
	}
	w.nothing(tokens[(winner+1)%workers])

	// The same response many times, another one, and an act of another face: one turn.
	direct := strings.Replace(proposes, `"p1"`, `"p2"`, 1)
	direct = strings.Replace(direct, `"terms":{"price":5}},`, `"terms":{"price":5},`, 1)
	together(workers, func(i int) {
		switch {
		case i == 0:
			answers[i] = w.send("POST", sessionPath(id)+"/messages", tokens[i], direct+"}")
		case i%2 == 0:
			answers[i] = w.respond(turn.Claim.ID, tokens[winner], strings.Replace(proposes, `"p1"`, `"p3"`, 1))
		default:
			answers[i] = w.respond(turn.Claim.ID, tokens[winner], proposes)
		}
	})
	var view struct {
		Turn struct {
			Number int `json:"number"`
		} `json:"turn"`
	}
	w.send("GET", sessionPath(id), w.tokens[cron], "").is(http.StatusOK, &view)
	var page api.Messages
	w.send("GET", sessionPath(id)+"/messages", w.tokens[cron], "").is(http.StatusOK, &page)
	if view.Turn.Number != 1 || len(page.Messages) != 3 {
		t.Errorf("there are %d turns and %d entries, want 1 and 3", view.Turn.Number, len(page.Messages))
	}
	for i, a := range answers {
		if a.status != http.StatusOK && a.status != http.StatusConflict {
			t.Errorf("answer %d is %d %s", i, a.status, a.body)
		}
	}
}

// together runs n calls at once.
func together(n int, do func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// A principal that signs for itself picks up and answers over NATS and HTTP with its own
// envelope; nobody signs for it.
func TestTurnsSigned(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	alpha, beta := w.Principal("agent://acme.com/alpha"), w.Principal("agent://widgets.co/beta")
	id := w.Open(alpha, beta)
	alpha.Say(id, testkit.Offer("p1", 5))
	var turn api.Turn
	testkit.Must(t, json.Unmarshal(beta.Call(api.TurnPickup.Name, `{"worker":"w"}`).Data, &turn))
	if turn.Reference != "p1" || turn.CounterpartyAct != "PROPOSE" || turn.Turn.Number != 4 {
		t.Errorf("the turn is %+v", turn)
	}
	respond := func(worker, rest string) string {
		return fmt.Sprintf(`{"turnId":%q,"worker":%q,%s}`, turn.Claim.ID, worker, rest)
	}
	testkit.Refused(t, beta.Call(api.TurnRespond.Name, respond("w", `"performative":"ACCEPT","body":{"referenceId":"p1"}`)), session.Unauthorized)
	envelope := string(beta.Envelope(id, &performatives.AcceptBody{ReferenceID: "p1"}))
	testkit.Refused(t, beta.Call(api.TurnRespond.Name, respond("other", `"envelope":`+envelope)), session.WrongTurn)
	token := w.token(api.AddToken{Agent: beta.Agent})
	var own api.Turn // claimed by the token's worker, so that only the missing signature is wrong
	var released api.ReleasedTurn
	testkit.Must(t, json.Unmarshal(beta.Call(api.TurnRelease.Name, fmt.Sprintf(`{"turnId":%q,"worker":"w"}`, turn.Claim.ID)).Data, &released))
	if !released.Released {
		t.Errorf("the release is answered %+v", released)
	}
	w.send("POST", "/v1/asp/turns/pickup", token, "").is(http.StatusOK, &own)
	unsigned := w.respond(own.Claim.ID, token, `{"performative":"ACCEPT","body":{"referenceId":"p1"}}`)
	unsigned.refused(http.StatusForbidden, session.Unauthorized)
	if !bytes.Contains(unsigned.body, []byte(`"turn":"unsigned"`)) {
		t.Errorf("the refusal is %s", unsigned.body)
	}
	w.send("POST", "/v1/asp/turns/"+own.Claim.ID+"/release", token, "").is(http.StatusOK, nil)
	testkit.Must(t, json.Unmarshal(beta.Call(api.TurnPickup.Name, `{"worker":"w"}`).Data, &turn))
	asp := func(r *http.Request) { r.Header.Set("Content-Type", "application/asp+json") }
	w.send("POST", "/v1/asp/turns/"+turn.Claim.ID+"/respond", token, envelope, asp).refused(http.StatusConflict, session.WrongTurn)
	w.send("POST", "/v1/asp/turns/"+turn.Claim.ID+"/respond", token, "[", asp).refused(http.StatusBadRequest, session.MalformedEnvelope)
	testkit.Accepted(t, beta.Call(api.TurnRespond.Name, respond("w", `"envelope":`+envelope)))
	if none := beta.Call(api.TurnPickup.Name, ""); string(none.Data) != "{}" {
		t.Errorf("with nothing to wait for, the reply is %s", none.Data)
	}
}

// waits asks for turn.wait over HTTP.
func (w httpWorld) waits(token, query string) (waited api.WaitedTurn) {
	w.Helper()
	w.send("GET", "/v1/asp/turns/wait?"+query, token, "").is(http.StatusOK, &waited)
	return waited
}

// GATEWAYS.md G6: whoever waits is answered by the act that makes it its turn, by the news it
// asked for and by the end of the session, and claims nothing.
func TestWaitForTurn(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	if got := w.waits(w.tokens[seller], ""); got.Status != api.WaitNone || got.Turn != nil {
		t.Errorf("before the invitation the seller hears %+v", got)
	}
	waited := make(chan api.WaitedTurn)
	go func() { waited <- w.waits(w.tokens[seller], "waitMs=25000") }()
	id := w.invites(`"invitationTimeoutMs":600000`)
	if got := <-waited; got.Status != api.WaitTurnWaits || got.Turn.Session != id || got.Turn.Claim != nil || got.Turn.View == nil {
		t.Errorf("the invitation ends the wait with %+v", got)
	}
	w.send("POST", sessionPath(id)+"/messages", w.tokens[seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).is(http.StatusOK, nil)
	in := "sessionId=" + string(id)
	if got := w.waits(w.tokens[seller], in+"&since=2"); got.Status != api.WaitNone {
		t.Errorf("in the other side's turn the seller hears %+v", got)
	}
	if got := w.waits(w.tokens[seller], in+"&since=1"); got.Status != api.WaitNews {
		t.Errorf("of the entry that is there the seller hears %+v", got)
	}
	turn := w.pickup(w.tokens[cron])
	go func() { waited <- w.waits(w.tokens[seller], in+"&waitMs=25000") }()
	w.respond(turn.Claim.ID, w.tokens[cron], proposes).is(http.StatusOK, nil)
	if got := <-waited; got.Status != api.WaitTurnWaits || got.Turn.Reference != "p1" || got.Turn.Turn.Number != 1 || got.Turn.Turn.Deadline == "" {
		t.Errorf("the offer ends the wait with %+v", got)
	}
	go func() { waited <- w.waits(w.tokens[cron], in+"&waitMs=25000") }()
	taken := w.pickup(w.tokens[seller])
	w.respond(taken.Claim.ID, w.tokens[seller], accepts).is(http.StatusOK, nil)
	if got := <-waited; got.Status != api.WaitOver {
		t.Errorf("the end of the session ends the wait with %+v", got)
	}
	stranger, none := w.send("GET", "/v1/asp/turns/wait?"+in, w.tokens[other], ""), w.send("GET", "/v1/asp/turns/wait?sessionId="+string(testkit.NewSession()), w.tokens[other], "")
	if stranger.refused(http.StatusNotFound, session.UnknownSession); !bytes.Equal(stranger.body, none.body) {
		t.Errorf("a stranger learns that a session is there:\n%s\n%s", stranger.body, none.body)
	}
	w.send("GET", "/v1/asp/turns/wait?since=1", w.tokens[seller], "").refused(http.StatusBadRequest, session.MalformedEnvelope)
}

// GATEWAYS.md G3: a QUERY is a turn of who is asked, and its answer a response.
func TestQueriedTurn(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	var opened api.Acceptance
	w.send("POST", "/v1/asp/sessions", w.tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"cups"}`, seller)).is(http.StatusCreated, &opened)
	at := sessionPath(opened.Session) + "/messages"
	w.send("POST", at, w.tokens[seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).is(http.StatusOK, nil)
	w.send("POST", at, w.tokens[cron], fmt.Sprintf(`{"performative":"QUERY","recipient":%q,"body":{"queryId":"q1","queryType":"stock","subject":"cups"}}`, seller)).is(http.StatusOK, nil)
	w.nothing(w.tokens[cron])
	turn := w.pickup(w.tokens[seller])
	if turn.Reference != "q1" || turn.CounterpartyAct != "QUERY" {
		t.Errorf("the turn is about %q, after %s", turn.Reference, turn.CounterpartyAct)
	}
	w.respond(turn.Claim.ID, w.tokens[seller], `{"performative":"INFORM","body":{"type":"fact","data":{"queryId":"q1","stock":3}}}`).is(http.StatusOK, nil)
	w.nothing(w.tokens[seller])
}
