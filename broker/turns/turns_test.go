package turns_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const cron, seller, other = testkit.Cron, testkit.Seller, testkit.Other

const (
	proposes = `{"performative":"PROPOSE","body":{"proposalId":"p1","type":"service-agreement","subject":"cups","terms":{"price":5}},` + testkit.Assessed + `}`
	accepts  = `{"performative":"ACCEPT","body":{"referenceId":"p1"},"message":"thanks",` + testkit.Assessed + `}`
)

// A world is a broker and workers who speak to it over HTTP.
type world struct{ *testkit.World }

func newWorld(t *testing.T, o testkit.Options) world {
	t.Helper()
	return world{testkit.NewHosted(t, o)}
}

// nothing asserts that nothing waits for a worker.
func (w world) nothing(token string) {
	w.Helper()
	if a := w.Send("POST", "/v1/asp/turns/pickup", token, ""); a.StatusCode != http.StatusNoContent || len(a.Body) > 0 {
		w.Errorf("pickup is answered %d %s, want 204", a.StatusCode, a.Body)
	}
}

// GATEWAYS.md G3: a turn is picked up, claimed by one worker, and answered; every refusal has
// its status, and the claim stays when the protocol refuses.
func TestTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	second := w.Token(api.AddToken{Agent: seller, Name: "second"})
	w.nothing(w.Tokens[cron])
	id := w.Invite(`"invitationTimeoutMs":600000,"seedAssessment":{"score":80}`)
	invited := w.PickUp(w.Tokens[seller])
	if invited.Session != id || invited.CounterpartyAct != "PROPOSE" || invited.Reference != "invitation" || invited.View.State != session.Invited {
		t.Errorf("the invitation waits as %+v", invited)
	}
	w.Respond(invited.Claim.ID, w.Tokens[seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).Is(http.StatusOK, nil)

	first := w.PickUp(w.Tokens[cron])
	if first.Session != id || first.Mode != "bilateral/1" || first.Turn.Number != 0 || first.Turn.Cap != 0 || first.CounterpartyAct != "none" ||
		len(first.History) != 2 || !strings.Contains(string(first.Terms), "buy cups") || string(first.SeedAssessment) != `{"score":80}` || first.Claim.Until == "" || first.Turn.Deadline == "" {
		t.Errorf("the first turn is %+v", first)
	}
	w.nothing(w.Tokens[seller])
	w.Respond(first.Claim.ID, w.Tokens[cron], strings.Replace(proposes, `"it fits"`, `""`, 1)).Refused(http.StatusUnprocessableEntity, session.SchemaInvalid)
	w.Respond(first.Claim.ID, w.Tokens[cron], accepts).Refused(http.StatusUnprocessableEntity, session.WrongState)
	w.Respond(first.Claim.ID, w.Tokens[cron], `{}`).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	if again := w.PickUp(w.Tokens[cron]); *again.Claim != *first.Claim || *again.Turn != *first.Turn {
		t.Errorf("after what was refused the claim is %+v %+v, it was %+v %+v", again.Claim, again.Turn, first.Claim, first.Turn)
	}
	outside, none := w.Respond(first.Claim.ID, w.Tokens[other], proposes), w.Respond(string(testkit.NewID()), w.Tokens[other], proposes)
	if outside.Refused(http.StatusNotFound, session.UnknownSession); !bytes.Equal(outside.Body, none.Body) {
		t.Errorf("a non-participant learns that a claim is there:\n%s\n%s", outside.Body, none.Body)
	}
	w.Respond(first.Claim.ID, w.Tokens[seller], proposes).Refused(http.StatusForbidden, session.Unauthorized)
	var proposed, again api.Acceptance
	w.Respond(first.Claim.ID, w.Tokens[cron], proposes).Is(http.StatusOK, &proposed)
	w.Respond(first.Claim.ID, w.Tokens[cron], proposes).Is(http.StatusOK, &again)
	if proposed.Duplicate || !again.Duplicate || again.Message != proposed.Message {
		t.Errorf("the same response again is answered %+v, the first %+v", again, proposed)
	}
	w.Respond(first.Claim.ID, w.Tokens[cron], strings.Replace(proposes, "5", "6", 1)).Refused(http.StatusConflict, session.WrongTurn)
	w.nothing(w.Tokens[cron])

	turn := w.PickUp(w.Tokens[seller])
	if turn.Turn.Number != 1 || turn.CounterpartyAct != "PROPOSE" || turn.Reference != "p1" || turn.Claim.ID == first.Claim.ID {
		t.Errorf("the second turn is %+v", turn)
	}
	w.nothing(second)
	w.Respond(turn.Claim.ID, second, accepts).Refused(http.StatusConflict, session.WrongTurn)
	w.Respond(string(id), second, accepts).Refused(http.StatusConflict, session.WrongTurn)
	w.Send("POST", "/v1/asp/turns/"+turn.Claim.ID+"/release", second, "").Refused(http.StatusConflict, session.WrongTurn)
	w.Send("POST", "/v1/asp/turns/"+turn.Claim.ID+"/release", w.Tokens[seller], "").Is(http.StatusOK, nil)
	w.Respond(turn.Claim.ID, w.Tokens[seller], accepts).Refused(http.StatusConflict, session.WrongTurn)
	if moved := w.PickUp(second); moved.Claim.ID != turn.Claim.ID {
		t.Errorf("a released turn waits as %+v", moved)
	}
	w.Respond(string(id), second, accepts).Is(http.StatusOK, &again)
	if again.State != session.Closed {
		t.Errorf("the ACCEPT leaves the session %s", again.State)
	}
	w.nothing(second)
	w.Send("POST", "/v1/asp/turns/pickup", second, `{"worker":"x"}`).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	readOnly := w.Token(api.AddToken{Agent: seller, ReadOnly: true})
	w.Send("POST", "/v1/asp/turns/pickup", readOnly, "").Refused(http.StatusForbidden, session.Unauthorized)
}

// A claim ends, by the lease or the timeout, and the turn waits again; the same worker that
// asks again extends nothing. The oldest turn comes first.
func TestTurnsClaimsEnd(t *testing.T) {
	t.Parallel()
	clock := &testkit.Clock{}
	w := newWorld(t, testkit.Options{Now: clock.Now, Claim: time.Minute})
	second := w.Token(api.AddToken{Agent: cron, Name: "second"})
	oldest := w.Match()
	clock.Advance(time.Second)
	newest := w.Match()
	var leased api.Turn
	w.Send("POST", "/v1/asp/turns/pickup", w.Tokens[cron], `{"leaseMs":5000,"modes":["bilateral/1"]}`).Is(http.StatusOK, &leased)
	other := w.PickUp(second)
	if leased.Session != oldest || other.Session != newest {
		t.Errorf("the turns come as %s, %s; they wait since %s, %s", leased.Session, other.Session, oldest, newest)
	}
	w.Send("POST", "/v1/asp/turns/pickup", w.Tokens[cron], `{"modes":["asp/1"]}`).Is(http.StatusNoContent, nil)
	clock.Advance(4 * time.Second)
	if again := w.PickUp(w.Tokens[cron]); *again.Claim != *leased.Claim {
		t.Errorf("the claim is %+v, it was %+v", again.Claim, leased.Claim)
	}
	clock.Advance(time.Second)
	w.Respond(leased.Claim.ID, w.Tokens[cron], proposes).Refused(http.StatusConflict, session.WrongTurn)
	clock.Advance(54 * time.Second)
	if again := w.PickUp(second); again.Session != newest {
		t.Errorf("before its timeout the claim of %s is lost for %s", newest, again.Session)
	}
	clock.Advance(time.Second)
	if again := w.PickUp(second); again.Session != oldest {
		t.Errorf("after its timeout the worker has %s, not the oldest turn", again.Session)
	}
	if again := w.PickUp(w.Tokens[cron]); again.Session != newest {
		t.Errorf("the turn of %s does not wait again", newest)
	}
}

// Of workers that race for one turn one gets it; claims and responses outlive restarts.
func TestTurnsRaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	const workers = 8
	tokens := []string{w.Tokens[cron]}
	for len(tokens) < workers {
		tokens = append(tokens, w.Token(api.AddToken{Agent: cron}))
	}
	id := w.Match()
	answers := make([]testkit.Answer, workers)
	together(workers, func(i int) { answers[i] = w.Send("POST", "/v1/asp/turns/pickup", tokens[i], "") })
	winner := -1
	for i, a := range answers {
		switch {
		case a.StatusCode == http.StatusOK && winner < 0:
			winner = i
		case a.StatusCode != http.StatusNoContent:
			t.Errorf("worker %d is answered %d %s", i, a.StatusCode, a.Body)
		}
	}
	if winner < 0 {
		t.Fatal("nobody got the turn")
	}
	var turn api.Turn
	answers[winner].Is(http.StatusOK, &turn)

	w.Down()
	w.Up()
	if again := w.PickUp(tokens[winner]); *again.Claim != *turn.Claim || *again.Turn != *turn.Turn {
		t.Errorf("after a restart the claim is %+v %+v, it was %+v %+v", again.Claim, again.Turn, turn.Claim, turn.Turn)
	}
	w.nothing(tokens[(winner+1)%workers])

	// The same response many times, another one, and an act of another face: one turn.
	direct := strings.Replace(proposes, `"p1"`, `"p2"`, 1)
	direct = strings.Replace(direct, `"terms":{"price":5}},`, `"terms":{"price":5},`, 1)
	together(workers, func(i int) {
		switch {
		case i == 0:
			answers[i] = w.Send("POST", testkit.SessionPath(id)+"/messages", tokens[i], direct+"}")
		case i%2 == 0:
			answers[i] = w.Respond(turn.Claim.ID, tokens[winner], strings.Replace(proposes, `"p1"`, `"p3"`, 1))
		default:
			answers[i] = w.Respond(turn.Claim.ID, tokens[winner], proposes)
		}
	})
	var view struct {
		Turn struct {
			Number int `json:"number"`
		} `json:"turn"`
	}
	w.Send("GET", testkit.SessionPath(id), w.Tokens[cron], "").Is(http.StatusOK, &view)
	var page api.Messages
	w.Send("GET", testkit.SessionPath(id)+"/messages", w.Tokens[cron], "").Is(http.StatusOK, &page)
	if view.Turn.Number != 1 || len(page.Messages) != 3 {
		t.Errorf("there are %d turns and %d entries, want 1 and 3", view.Turn.Number, len(page.Messages))
	}
	for i, a := range answers {
		if a.StatusCode != http.StatusOK && a.StatusCode != http.StatusConflict {
			t.Errorf("answer %d is %d %s", i, a.StatusCode, a.Body)
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
	w := newWorld(t, testkit.Options{})
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
	token := w.Token(api.AddToken{Agent: beta.Agent})
	var own api.Turn // claimed by the token's worker, so that only the missing signature is wrong
	var released api.ReleasedTurn
	testkit.Must(t, json.Unmarshal(beta.Call(api.TurnRelease.Name, fmt.Sprintf(`{"turnId":%q,"worker":"w"}`, turn.Claim.ID)).Data, &released))
	if !released.Released {
		t.Errorf("the release is answered %+v", released)
	}
	w.Send("POST", "/v1/asp/turns/pickup", token, "").Is(http.StatusOK, &own)
	unsigned := w.Respond(own.Claim.ID, token, `{"performative":"ACCEPT","body":{"referenceId":"p1"}}`)
	unsigned.Refused(http.StatusForbidden, session.Unauthorized)
	if !bytes.Contains(unsigned.Body, []byte(`"turn":"unsigned"`)) {
		t.Errorf("the refusal is %s", unsigned.Body)
	}
	w.Send("POST", "/v1/asp/turns/"+own.Claim.ID+"/release", token, "").Is(http.StatusOK, nil)
	testkit.Must(t, json.Unmarshal(beta.Call(api.TurnPickup.Name, `{"worker":"w"}`).Data, &turn))
	asp := func(r *http.Request) { r.Header.Set("Content-Type", "application/asp+json") }
	w.Send("POST", "/v1/asp/turns/"+turn.Claim.ID+"/respond", token, envelope, asp).Refused(http.StatusConflict, session.WrongTurn)
	w.Send("POST", "/v1/asp/turns/"+turn.Claim.ID+"/respond", token, "[", asp).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	first := testkit.Accepted(t, beta.Call(api.TurnRespond.Name, respond("w", `"envelope":`+envelope)))
	for _, named := range []string{turn.Claim.ID, string(id)} { // as a client asks that got no answer
		again := testkit.Accepted(t, beta.Call(api.TurnRespond.Name, fmt.Sprintf(`{"turnId":%q,"worker":"w","envelope":%s}`, named, envelope)))
		if !again.Duplicate || again.Hash != first.Hash {
			t.Errorf("the answer again is %+v", again)
		}
	}
	if none := beta.Call(api.TurnPickup.Name, ""); string(none.Data) != "{}" {
		t.Errorf("with nothing to wait for, the reply is %s", none.Data)
	}
}

// waits asks for turn.wait over HTTP.
func (w world) waits(token, query string) (waited api.WaitedTurn) {
	w.Helper()
	w.Send("POST", "/v1/asp/turns/wait", token, "{"+query+"}").Is(http.StatusOK, &waited)
	if waited.Nothing != (waited.Snapshot == nil) {
		w.Errorf("%s is answered %+v", query, waited)
	}
	return waited
}

// GATEWAYS.md G9: whoever waits is answered by what makes it its turn, by news and by the end of
// the session, with the snapshot, and claims nothing.
func TestWaitForTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	if got := w.waits(w.Tokens[seller], ""); !got.Nothing {
		t.Errorf("before the invitation the seller is told %+v", got)
	}
	waited := make(chan api.WaitedTurn)
	go func() { waited <- w.waits(w.Tokens[seller], `"seconds":50`) }()
	id := w.Invite(`"invitationTimeoutMs":600000`)
	got := <-waited
	if got.Nothing || got.Snapshot.Session != id || !got.Snapshot.Waiting.Yours || len(got.Snapshot.Moves) == 0 {
		t.Fatalf("the invitation ends the wait with %+v", got)
	}
	in := fmt.Sprintf(`"sessionId":%q`, id)
	since := func(c any) string { return fmt.Sprintf(`,"since":%v`, c) }
	w.Send("POST", testkit.SessionPath(id)+"/messages", w.Tokens[seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).Is(http.StatusOK, nil)
	if got := w.waits(w.Tokens[seller], in+since(got.Snapshot.Cursor)); !got.Nothing || got.Cursor != "2" {
		t.Errorf("of its own ACCEPT the seller is told %+v", got)
	}
	if got := w.waits(w.Tokens[cron], in+since(1)); got.Nothing || got.Snapshot.Cursor != 2 || len(got.Snapshot.News) != 1 || got.Cursor != "2" {
		t.Errorf("of the ACCEPT the buyer is told %+v", got)
	}
	turn := w.PickUp(w.Tokens[cron])
	go func() { waited <- w.waits(w.Tokens[seller], in+since(`"2"`)+`,"seconds":50`) }()
	w.Respond(turn.Claim.ID, w.Tokens[cron], proposes).Is(http.StatusOK, nil)
	if got := <-waited; got.Nothing || len(got.Snapshot.Offers) != 1 || !got.Snapshot.Waiting.Yours || len(got.Snapshot.News) != 1 {
		t.Errorf("the offer ends the wait with %+v", got)
	}
	go func() { waited <- w.waits(w.Tokens[cron], in+since(3)+`,"seconds":50`) }()
	taken := w.PickUp(w.Tokens[seller])
	w.Respond(taken.Claim.ID, w.Tokens[seller], accepts).Is(http.StatusOK, nil)
	if got := <-waited; got.Nothing || !got.Snapshot.State.Over() {
		t.Errorf("the end of the session ends the wait with %+v", got)
	}
	if got := w.waits(w.Tokens[seller], in+since(`"3"`)+`,"seconds":50`); got.Nothing || !got.Snapshot.State.Over() {
		t.Errorf("of the end that another worker of its own brought about, the seller is told %+v", got)
	} else if got = w.waits(w.Tokens[seller], in+since(got.Snapshot.Cursor)); !got.Nothing {
		t.Errorf("of an end that it was told of, the seller is told %+v", got)
	}
	// A cursor of a store before it was restored may be beyond the end: whoever has it begins anew.
	if got := w.waits(w.Tokens[seller], in+since(99)); got.Nothing || got.Cursor != "4" {
		t.Errorf("beyond the end of the session the seller is told %+v", got)
	}
	next := w.Invite(`"invitationTimeoutMs":600000`)
	if got := w.waits(w.Tokens[seller], fmt.Sprintf(`"since":"i1000000,,%s:9"`, next)); got.Nothing || got.Snapshot.Session != next {
		t.Errorf("beyond the end of its inbox the seller is told %+v", got)
	} else if got = w.waits(w.Tokens[seller], fmt.Sprintf(`"since":%q`, got.Cursor)); !got.Nothing {
		t.Errorf("then the seller is told %+v", got)
	}
	before := w.waits(w.Tokens[seller], fmt.Sprintf(`"since":"i1,,%s:99"`, next))
	if got := w.waits(w.Tokens[seller], fmt.Sprintf(`"since":%q`, before.Cursor)); before.Nothing || got.Nothing || got.Snapshot.Session != next || strings.Contains(string(got.Cursor), ":99") {
		t.Errorf("with a head beyond the end of a session the seller is told %+v, then %+v", before, got)
	}
	outside, none := w.Send("POST", "/v1/asp/turns/wait", w.Tokens[other], "{"+in+"}"),
		w.Send("POST", "/v1/asp/turns/wait", w.Tokens[other], fmt.Sprintf(`{"sessionId":%q}`, testkit.NewSession()))
	if outside.Refused(http.StatusNotFound, session.UnknownSession); !bytes.Equal(outside.Body, none.Body) {
		t.Errorf("a non-participant learns that a session is there:\n%s\n%s", outside.Body, none.Body)
	}
	reader := w.Token(api.AddToken{Agent: seller, ReadOnly: true})
	w.waits(reader, "")
	for _, bad := range []string{`"since":1`, `"since":"x"`, `"since":"ix"`, `"seconds":51`, `"seconds":-1`, in + `,"since":"i1"`} {
		w.Send("POST", "/v1/asp/turns/wait", w.Tokens[seller], "{"+bad+"}").Refused(http.StatusBadRequest, session.MalformedEnvelope)
	}
}

// GATEWAYS.md G9: what was given does not come again, whoever's turn it is. Two workers wait, each
// until nothing happened for five seconds: each is told once of each session.
func TestWaitDoesNotRepeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	ids := []performatives.SessionID{w.Invite(`"invitationTimeoutMs":600000`), w.Invite(`"invitationTimeoutMs":600000`)}
	type told map[performatives.SessionID][]uint64 // heads
	workers := make(chan told)
	first := make(chan struct{}, 2)
	for range 2 {
		token := w.Token(api.AddToken{Agent: seller})
		go func() {
			heads, cursor := told{}, ""
			for {
				seconds := int(api.LongestWait.Seconds())
				if len(heads[ids[0]]) == 2 { // it has been told of everything
					seconds = 1
				}
				got := w.waits(token, fmt.Sprintf(`%s"seconds":%d`, cursor, seconds))
				if cursor = fmt.Sprintf(`"since":%q,`, got.Cursor); got.Nothing {
					break
				}
				heads[got.Snapshot.Session] = append(heads[got.Snapshot.Session], got.Snapshot.Head.N)
				if len(heads) == len(ids) && len(heads[ids[0]]) == 1 {
					first <- struct{}{}
				}
			}
			workers <- heads
		}()
	}
	<-first
	<-first
	// While both wait: its own act is no news to the seller, the buyer's is, once.
	w.Send("POST", testkit.SessionPath(ids[0])+"/messages", w.Tokens[seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).Is(http.StatusOK, nil)
	w.Respond(w.PickUp(w.Tokens[cron]).Claim.ID, w.Tokens[cron], proposes).Is(http.StatusOK, nil)
	for range 2 {
		heads := <-workers
		if want := (told{ids[0]: {0, 2}, ids[1]: {0}}); !maps.EqualFunc(heads, want, slices.Equal) {
			t.Errorf("a worker is told of %v, want %v", heads, want)
		}
	}
}

// GATEWAYS.md G9: who waits without a cursor is told once at once of what waits, and of news. What
// it was told before comes again when the wait ends, of several sessions one after the other, so a
// lost answer loses no turn; another worker is told by itself.
func TestWaitWithoutCursor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	ids := []performatives.SessionID{w.Invite(`"invitationTimeoutMs":600000`), w.Invite(`"invitationTimeoutMs":600000`)}
	token := w.Token(api.AddToken{Agent: seller})
	told := func(query string, want ...performatives.SessionID) {
		t.Helper()
		var got []performatives.SessionID
		for range want {
			if one := w.waits(token, query); !one.Nothing {
				got = append(got, one.Snapshot.Session)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s is told of %v, want %v", query, got, want)
		}
	}
	in := fmt.Sprintf(`"sessionId":%q,"seconds":50`, ids[0])
	slices.Sort(ids)
	told(`"seconds":50`, ids...)
	told(in, ids[0:1]...)
	// Nothing is new, so these wait as long as they may, and are told again.
	for _, query := range []string{`"seconds":0.2`, `"seconds":0`} {
		began := time.Now()
		told(query, ids...)
		if query != `"seconds":0` && time.Since(began) < 400*time.Millisecond {
			t.Errorf("two waits of %s are over after %s", query, time.Since(began))
		}
	}
	waited := make(chan api.WaitedTurn)
	go func() { waited <- w.waits(token, `"seconds":50`) }()
	id := w.Invite(`"invitationTimeoutMs":600000`)
	if got := <-waited; got.Nothing || got.Snapshot.Session != id {
		t.Errorf("of a new invitation it is told %+v", got)
	}
	told(`"seconds":0.1`, id) // whose turn it is among what still waits
	told(`"seconds":0.1`, ids[0])
	if got := w.waits(w.Token(api.AddToken{Agent: seller}), `"seconds":50`); got.Nothing {
		t.Error("another worker is told nothing")
	}
}

// GATEWAYS.md G3: a QUERY is a turn of who is asked, and its answer a response.
func TestQueriedTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	var opened api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"cups"}`, seller)).Is(http.StatusCreated, &opened)
	at := testkit.SessionPath(opened.Session) + "/messages"
	w.Send("POST", at, w.Tokens[seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).Is(http.StatusOK, nil)
	w.Send("POST", at, w.Tokens[cron], fmt.Sprintf(`{"performative":"QUERY","recipient":%q,"body":{"queryId":"q1","queryType":"stock","subject":"cups"}}`, seller)).Is(http.StatusOK, nil)
	w.nothing(w.Tokens[cron])
	turn := w.PickUp(w.Tokens[seller])
	if turn.Reference != "q1" || turn.CounterpartyAct != "QUERY" {
		t.Errorf("the turn is about %q, after %s", turn.Reference, turn.CounterpartyAct)
	}
	w.Respond(turn.Claim.ID, w.Tokens[seller], `{"performative":"INFORM","body":{"type":"fact","data":{"queryId":"q1","stock":3}}}`).Is(http.StatusOK, nil)
	w.nothing(w.Tokens[seller])
}

// GATEWAYS.md G9: a delegate's turns are the delegation that is offered and the result that it owes,
// and a wait tells it of both. A full delegate owes none.
func TestOwedResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	for _, authority := range []string{"advisory", "full"} {
		var opened, asked api.Acceptance
		w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"cups"}`, seller)).Is(http.StatusCreated, &opened)
		at, in := testkit.SessionPath(opened.Session)+"/messages", fmt.Sprintf(`"sessionId":%q`, opened.Session)
		w.Send("POST", at, w.Tokens[seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).Is(http.StatusOK, nil)
		w.Send("POST", at, w.Tokens[cron], fmt.Sprintf(`{"performative":"DELEGATE","body":{"targetAgent":%q,"scope":"is it cheap?","authority":%q}}`, other, authority)).
			Is(http.StatusOK, &asked)
		offered := w.waits(w.Tokens[other], in)
		var moves []string // answers to the delegation, and what its authority lets it say
		if s := offered.Snapshot; s != nil {
			for _, m := range s.Moves {
				moves = append(moves, m.Performative)
			}
		}
		want := []string{"ACCEPT", "REJECT", "WITHDRAW", "INFORM", "INFORM", "OBSERVE"}
		if authority == "full" {
			want = []string{"PROPOSE", "ACCEPT", "REJECT", "WITHDRAW", "DELEGATE", "INFORM", "QUERY", "OBSERVE"}
		}
		if s := offered.Snapshot; s == nil || s.Purpose != "" || len(s.Open) != 1 || !s.Waiting.Yours || !slices.Equal(moves, want) {
			t.Fatalf("of the %s delegation that is offered it is told %v in %+v", authority, moves, offered.Snapshot)
		}
		turn := w.PickUp(w.Tokens[other])
		w.Respond(turn.Claim.ID, w.Tokens[other], fmt.Sprintf(`{"performative":"ACCEPT","body":{"referenceId":%q}}`, turn.Reference)).Is(http.StatusOK, nil)
		if authority == "full" {
			w.nothing(w.Tokens[other])
			continue
		}
		owed := w.PickUp(w.Tokens[other])
		if owed.Reference != string(asked.Message) || owed.CounterpartyAct != "DELEGATE" || owed.Claim.ID == turn.Claim.ID {
			t.Errorf("the owed result is the turn %+v", owed)
		}
		if s := w.waits(w.Tokens[cron], in).Snapshot; s.Waiting == nil || s.Waiting.Yours || !slices.Contains(s.Waiting.For, other) {
			t.Errorf("the session waits for %+v", s.Waiting)
		}
		does := slices.ContainsFunc(w.waits(w.Tokens[other], in).Snapshot.Moves, func(m api.Move) bool {
			return m.Performative == "INFORM" && m.Reference == string(asked.Message)
		})
		if !does {
			t.Error("the result that it owes is none of its moves")
		}
		w.Respond(owed.Claim.ID, w.Tokens[other], `{"performative":"INFORM","body":{"type":"result","data":{"result":"it is"}}}`).Is(http.StatusOK, nil)
		w.nothing(w.Tokens[other])
	}
}
