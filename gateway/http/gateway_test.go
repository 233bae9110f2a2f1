package httpgateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	httpgateway "github.com/parley-asp/parley/gateway/http"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const cron, seller, other = testkit.Cron, testkit.Seller, testkit.Other

// A world is a broker and those who speak to it over HTTP.
type world struct{ *testkit.World }

func key(k string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Idempotency-Key", k) }
}

// GATEWAYS.md G2: hosted agents negotiate over HTTP alone, retries are answered with the
// first acceptance, also after a restart, and the transcript says who holds the keys.
func TestHTTPNegotiation(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{})
	opening := fmt.Sprintf(`{"with":[%q],"purpose":"buy cups","terms":{"invitationTimeoutMs":600000}}`, seller)
	var opened, again api.Acceptance
	first := w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], opening, key("k1"))
	first.Is(http.StatusCreated, &opened)
	if got, want := first.Header.Get("Location"), "/v1/asp/sessions/"+string(opened.Session); got != want {
		t.Errorf("Location is %q, want %q", got, want)
	}
	path := "/v1/asp/sessions/" + string(opened.Session)
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], strings.Replace(opening, "cups", "mugs", 1), key("k1")).Refused(http.StatusConflict, session.Duplicate)

	w.Down()
	w.Up()
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], opening, key("k1")).Is(http.StatusCreated, &again)
	if !again.Duplicate || again.Message != opened.Message || again.Session != opened.Session {
		t.Errorf("a retry is answered %+v, the first %+v", again, opened)
	}

	accept := `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`
	w.Send("POST", path+"/messages", w.Tokens[other], accept).Refused(http.StatusNotFound, session.UnknownSession)
	w.Send("POST", path+"/messages", w.Tokens[seller], accept).Is(http.StatusOK, nil)
	offer := fmt.Sprintf(`{"performative":"PROPOSE","messageId":%q,"body":{"proposalId":"p","type":"service-agreement","subject":"cups","terms":{"price":5}}}`, testkit.NewID())
	var offered api.Acceptance
	w.Send("POST", path+"/messages", w.Tokens[seller], offer, key("k2")).Is(http.StatusOK, &offered)
	for _, retry := range []func(*http.Request){key("k2"), key("k3"), func(*http.Request) {}} { // the messageId is enough
		w.Send("POST", path+"/messages", w.Tokens[seller], offer, retry).Is(http.StatusOK, &again)
		if !again.Duplicate || again.Sequence != offered.Sequence {
			t.Errorf("the same messageId again is answered %+v", again)
		}
	}
	w.Send("POST", path+"/messages", w.Tokens[seller], strings.Replace(offer, "5", "6", 1)).Refused(http.StatusConflict, session.Duplicate)

	var page api.Messages
	w.Send("GET", path+"/messages?since_sequence=1&limit=1", w.Tokens[cron], "").Is(http.StatusOK, &page)
	if len(page.Messages) != 1 || page.Next == nil || *page.Next != 2 {
		t.Errorf("the page is %s, next %v", page.Messages, page.Next)
	}
	if one := w.Send("GET", path+"/messages/"+string(offered.Message), w.Tokens[cron], ""); one.StatusCode != http.StatusOK || !bytes.Contains(one.Body, []byte(offered.Hash)) {
		t.Errorf("one message is %d %s", one.StatusCode, one.Body)
	}
	w.Send("GET", path+"/messages/"+string(testkit.NewID()), w.Tokens[cron], "").Refused(http.StatusNotFound, session.UnknownSession)
	var view api.SessionView
	w.Send("GET", path, w.Tokens[cron], "").Is(http.StatusOK, &view)
	for _, p := range view.Participants {
		if p.Custody != performatives.Hosted {
			t.Errorf("the custody of the key of %s is %q", p.Agent, p.Custody)
		}
	}
	w.Send("GET", "/v1/asp/sessions?awaiting=me", w.Tokens[cron], "").Is(http.StatusOK, nil)
	w.Send("DELETE", path, w.Tokens[cron], `{"outcome":"completed","summary":"done"}`).Is(http.StatusOK, &again)
	if again.State != session.Closed {
		t.Errorf("after DELETE the session is %s", again.State)
	}
}

// GATEWAYS.md G1: who signs for itself sends envelopes, and nobody signs for it.
func TestHTTPSigned(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{})
	alpha := w.Principal(performatives.Agent("agent://acme.com/alpha"))
	token := w.Token(api.AddToken{Agent: alpha.Agent})
	id := testkit.NewSession()
	envelope := alpha.Envelope(id, &performatives.ProposeBody{
		ProposalID: "i", Type: performatives.SessionInvitation, Subject: "s", Terms: []byte(fmt.Sprintf(`{"purpose":"p","participants":[%q]}`, seller)),
	})
	signed := func(r *http.Request) { r.Header.Set("Content-Type", "application/asp+json") }
	w.Send("POST", "/v1/asp/sessions", token, string(envelope), signed).Is(http.StatusCreated, nil)
	w.Send("POST", "/v1/asp/sessions/"+string(id)+"/messages", token, `{"performative":"OBSERVE","body":{"subject":"x"}}`).Refused(http.StatusForbidden, session.Unauthorized)
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], string(envelope), signed).Refused(http.StatusForbidden, session.Unauthorized)
	plain := w.Send("DELETE", testkit.SessionPath(id), token, `{"outcome":"abandoned"}`)
	plain.Refused(http.StatusForbidden, session.Unauthorized)
	enveloped := w.Send("DELETE", testkit.SessionPath(id), token, string(envelope), signed)
	enveloped.Refused(http.StatusUnsupportedMediaType, session.MalformedEnvelope)
	for _, a := range []testkit.Answer{plain, enveloped} {
		if !strings.Contains(string(a.Body), "a signed CLOSE by POST to /v1/asp/sessions/{sessionId}/messages") {
			t.Errorf("DELETE by who signs for itself is refused %s", a.Body)
		}
	}
	w.Send("POST", "/v1/asp/sessions", token, "{", signed).Refused(http.StatusBadRequest, session.MalformedEnvelope)

	proof := api.ProveToken{Agent: alpha.Agent, Timestamp: time.Now().UTC().Format(time.RFC3339Nano), Audience: w.Server.Broker.Command.Key()}
	bytesOf, err := proof.SigningBytes()
	testkit.Must(t, err)
	proof.Signature, err = performatives.SignBytes(alpha.Signer, bytesOf)
	testkit.Must(t, err)
	data, err := json.Marshal(proof)
	testkit.Must(t, err)
	var made api.Token
	w.Send("POST", "/v1/asp/token", "", string(data)).Is(http.StatusCreated, &made)
	w.Send("GET", "/v1/asp/sessions", made.Token, "").Is(http.StatusOK, nil)
	w.Send("POST", "/v1/asp/token", "", string(data)).Refused(http.StatusForbidden, session.Unauthorized)
}

// Each bad request has a clear answer, and non-participants learn nothing.
func TestHTTPRefusals(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{HTTPOrigins: []string{"https://acme.com"}})
	var opened api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, seller)).Is(http.StatusCreated, &opened)
	of, none := "/v1/asp/sessions/"+string(opened.Session), "/v1/asp/sessions/"+string(testkit.NewSession())
	act := `{"performative":"OBSERVE","body":{"subject":"x"}}`
	for _, ask := range []struct{ method, path, body string }{{"GET", "", ""}, {"GET", "/messages", ""}, {"POST", "/messages", act}, {"DELETE", "", "{}"}} {
		a, b := w.Send(ask.method, of+ask.path, w.Tokens[other], ask.body), w.Send(ask.method, none+ask.path, w.Tokens[other], ask.body)
		a.Refused(http.StatusNotFound, session.UnknownSession)
		a.Header.Del("Date")
		b.Header.Del("Date")
		if !bytes.Equal(a.Body, b.Body) || fmt.Sprint(a.Header) != fmt.Sprint(b.Header) {
			t.Errorf("%s %s tells a non-participant\n%s %v, and of no session\n%s %v", ask.method, ask.path, a.Body, a.Header, b.Body, b.Header)
		}
	}

	readOnly := w.Token(api.AddToken{Agent: cron, ReadOnly: true})
	w.Send("GET", of, readOnly, "").Is(http.StatusOK, nil)
	w.Send("POST", of+"/messages", readOnly, act).Refused(http.StatusForbidden, session.Unauthorized)
	gone, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: cron})
	testkit.Must(t, err)
	_, err = w.OperatorClient().RemoveToken(w.Ctx, gone.ID)
	testkit.Must(t, err)
	for _, token := range []string{"", "parley_x_y", gone.Token, string(cron), strings.ToUpper(w.Tokens[cron])} {
		a := w.Send("GET", of, token, "")
		a.Refused(http.StatusUnauthorized, session.Unauthorized)
		if a.Header.Get("WWW-Authenticate") == "" {
			t.Error("a 401 without WWW-Authenticate")
		}
	}
	w.Send("GET", of+"?access_token="+w.Tokens[cron], "", "").Refused(http.StatusUnauthorized, session.Unauthorized)
	w.Send("GET", of+"?access_token="+w.Tokens[cron], w.Tokens[cron], "").Refused(http.StatusUnauthorized, session.Unauthorized)

	send := func(method, path, body string, change ...func(*http.Request)) testkit.Answer {
		return w.Send(method, path, w.Tokens[cron], body, change...)
	}
	kind := func(k string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Content-Type", k) }
	}
	for _, bad := range []string{"{", `[]`, `{"performative":"OBSERVE","performative":"CLOSE"}`, `{"performatif":"OBSERVE"}`, "{\"performative\":\"\xff\"}", `{"performative":7}`, `null`, ``} {
		send("POST", of+"/messages", bad).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	}
	for _, no := range []string{"null", "[]", "1"} {
		send("PUT", "/v1/asp/agents/"+url.PathEscape(string(cron))+"/card", no).Refused(http.StatusBadRequest, session.MalformedEnvelope)
		send("POST", "/v1/asp/escalations/x/claim", no).Refused(http.StatusBadRequest, session.MalformedEnvelope)
		send("DELETE", of, no).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	}
	send("POST", of+"/messages", `{"performative":"SHOUT","body":{}}`).Refused(http.StatusBadRequest, session.UnknownPerformative)
	send("POST", of+"/messages", act, kind("text/plain")).Refused(http.StatusUnsupportedMediaType, session.MalformedEnvelope)
	send("POST", of+"/messages", act, kind("application/x-www-form-urlencoded")).Refused(http.StatusUnsupportedMediaType, session.MalformedEnvelope)
	send("POST", of+"/messages", strings.Repeat(" ", 300<<10)+act).Refused(http.StatusRequestEntityTooLarge, session.TooLarge)
	send("POST", of+"/messages", act, key(strings.Repeat("k", 256))).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	for _, bad := range []string{"?limit=x", "?limit=0", "?limit=-1", "?limit=1&limit=2", "?since=%zz", "?surprise=1", "?since_sequence=1&cursor=2"} {
		send("GET", of+"/messages"+bad, "").Refused(http.StatusBadRequest, session.MalformedEnvelope)
	}
	send("GET", "/v1/asp/sessions?state=NEVER", "").Refused(http.StatusBadRequest, session.MalformedEnvelope)
	for _, path := range []string{"/nothing", "/", "//sessions", "/sessions/../sessions", "/sessions/", "/agents/" + string(seller) + "/card", "/sessions%2F"} {
		send("GET", "/v1/asp"+path, "").Refused(http.StatusNotFound, session.MalformedEnvelope)
	}
	for missing, body := range map[string]string{"/with": `{"purpose":"x"}`, "/purpose": `{"with":["agent://widgets.co/seller"]}`} {
		a := send("POST", "/v1/asp/sessions", body)
		a.Refused(http.StatusBadRequest, session.MalformedEnvelope)
		if !strings.Contains(string(a.Body), `"`+missing+`: is missing"`) {
			t.Errorf("without %s: %s", missing, a.Body)
		}
	}
	if a := send("GET", of+"/events", "", func(r *http.Request) { r.Header.Set("Last-Event-ID", "x") }); !strings.Contains(string(a.Body), `"path":"/Last-Event-ID"`) {
		t.Errorf("a bad Last-Event-ID is answered %s", a.Body)
	}
	if a := send("HEAD", of+"/events", ""); a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD of events is answered %d %v", a.StatusCode, a.Header)
	}
	if a := send("PUT", of, "{}"); a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "GET, DELETE" {
		t.Errorf("PUT of a session is answered %d, Allow %q", a.StatusCode, a.Header.Get("Allow"))
	}
	send("GET", "/v1/asp/agents/"+url.PathEscape("agent://no.where/x")+"/card", "").Refused(http.StatusNotFound, session.UnknownAgent)
	send("GET", "/v1/asp/agents/"+url.PathEscape(string(seller))+"/card", "").Is(http.StatusOK, nil)
	send("PUT", "/v1/asp/agents/"+url.PathEscape(string(seller))+"/card", `{"name":"x"}`).Refused(http.StatusForbidden, session.Unauthorized)
	send("PUT", "/v1/asp/agents/"+url.PathEscape(string(cron))+"/card", `{"name":"Cron\r\nX: y"}`).Is(http.StatusOK, nil)

	from := func(origin string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Origin", origin)
			r.Header.Set("Access-Control-Request-Method", "POST")
		}
	}
	if a := w.Send("OPTIONS", of+"/messages", "", "", from("https://acme.com")); a.StatusCode != http.StatusNoContent || a.Header.Get("Access-Control-Allow-Origin") != "https://acme.com" ||
		!strings.Contains(a.Header.Get("Access-Control-Allow-Headers"), "If-Match, Last-Event-ID, Traceparent") {
		t.Errorf("the preflight of a listed origin is answered %d %v", a.StatusCode, a.Header)
	}
	if a := w.Send("GET", of+"/snapshot", w.Tokens[cron], "", from("https://acme.com")); a.Header.Get("ETag") == "" || a.Header.Get("Access-Control-Expose-Headers") != "ETag, Location, Retry-After, WWW-Authenticate" {
		t.Errorf("a page may not read what it is answered: %v", a.Header)
	}
	if a := w.Send("OPTIONS", of+"/messages", "", "", from("https://evil.com")); a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("the preflight of another origin is answered %d %v", a.StatusCode, a.Header)
	}
}

// HTTP/2 is spoken without TLS too, by a client that knows so.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{})
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, "http://"+w.HTTPAddr+"/v1/asp/inbox/events", nil)
	testkit.Must(t, err)
	r.Header.Set("Authorization", "Bearer "+w.Tokens[cron])
	reply, err := transport.RoundTrip(r)
	testkit.Must(t, err)
	defer reply.Body.Close()
	if reply.ProtoMajor != 2 || reply.StatusCode != http.StatusOK {
		t.Errorf("answered %s %s", reply.Proto, reply.Status)
	}
}

// Under --dev the URI is a token, and a rebound name gets nothing.
func TestHTTPDev(t *testing.T) {
	t.Parallel()
	h := testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0"})
	var opened api.Acceptance
	h.Send("POST", "/v1/asp/sessions", string(cron)+"#one", fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, seller)).Is(http.StatusCreated, &opened)
	h.Send("GET", "/v1/asp/sessions/"+string(opened.Session), string(seller), "").Is(http.StatusOK, nil)
	h.Send("GET", "/v1/asp/sessions", "agent://", "").Refused(http.StatusUnauthorized, session.Unauthorized)
	h.Send("GET", "/v1/asp/sessions", string(cron), "", func(r *http.Request) { r.Host = "evil.com" }).Refused(http.StatusForbidden, session.Unauthorized)
	var described struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]any
	}
	h.Send("GET", "/openapi.json", "", "").Is(http.StatusOK, &described)
	for path, operations := range described.Paths {
		for method, o := range operations {
			for _, code := range session.Codes() {
				if !strings.Contains(fmt.Sprint(o), fmt.Sprintf("%d:map", code.Status())) {
					t.Errorf("%s %s does not describe %d %s", method, path, code.Status(), code)
				}
			}
		}
	}
	if described.OpenAPI != "3.1.0" {
		t.Errorf("the description says OpenAPI %q", described.OpenAPI)
	}
	a, b := h.Send("GET", "/openapi.json", "", ""), h.Send("GET", "/v1/asp/openapi.json", "", "")
	if !bytes.Equal(a.Body, b.Body) {
		t.Error("the two descriptions differ")
	}
}

// GATEWAYS.md G2: entries come as they are accepted, a stream resumes without a gap, also at
// another broker's cursor, and ends with the session, or when its token is removed.
func TestHTTPEvents(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{Archive: archive.Policy{After: time.Hour}})
	var opened, sent api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, seller)).Is(http.StatusCreated, &opened)
	path := "/v1/asp/sessions/" + string(opened.Session)
	removed, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: cron, ReadOnly: true})
	testkit.Must(t, err)
	w.Send("GET", path+"/events", w.Tokens[other], "").Refused(http.StatusNotFound, session.UnknownSession)

	inbox, all, second := w.Events("/v1/asp/inbox/events", w.Tokens[cron], ""), w.Events(path+"/events", w.Tokens[cron], ""), w.Events(path+"/events", removed.Token, "0")
	beyond := w.Events(path+"/events?since_sequence=100", w.Tokens[cron], "")
	// Who has seen more than the store has, as before it was restored, is sent what comes now.
	restored := map[string]func() testkit.Event{"session": w.Events(path+"/events", w.Tokens[cron], "100"), "inbox": w.Events("/v1/asp/inbox/events", w.Tokens[cron], "100000")}
	if e := all(); e.Name != "session_state" || !strings.HasPrefix(e.Data, `{"state":"INVITED","previous":"IDLE",`) {
		t.Errorf("first came %+v", e)
	}
	if e := all(); e.Name != "message" || e.ID != "0" {
		t.Errorf("then came %+v", e)
	}
	w.Send("POST", path+"/messages", w.Tokens[seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).Is(http.StatusOK, &sent)
	for name, next := range map[string]func() testkit.Event{"all": all, "second": second} {
		if e := next(); e.Name != "session_state" || !strings.Contains(e.Data, `"previous":"INVITED"`) {
			t.Errorf("%s: then came %+v", name, e)
		}
		if e := next(); e.ID != "1" || !strings.Contains(e.Data, string(sent.Hash)) {
			t.Errorf("%s: then came %+v", name, e)
		}
	}
	if e := restored["session"](); e.Name != "session_state" {
		t.Errorf("beyond the end of the session came %+v", e)
	}
	for name, next := range restored {
		if e := next(); e.Name != "message" || !strings.Contains(e.Data, string(sent.Hash)) {
			t.Errorf("beyond the end of the %s came %+v", name, e)
		}
	}
	delivered := inbox()
	if delivered.Name != "message" || !strings.Contains(delivered.Data, string(sent.Hash)) {
		t.Errorf("the inbox has %+v", delivered)
	}
	_, err = w.OperatorClient().RemoveToken(w.Ctx, removed.ID)
	testkit.Must(t, err)
	if e := second(); e.Name != "" {
		t.Errorf("a removed token is sent %+v", e)
	}
	w.Send("DELETE", path, w.Tokens[seller], "").Is(http.StatusOK, nil)
	if e := all(); !strings.Contains(e.Data, "CLOSED") {
		t.Errorf("then came %+v", e)
	}
	if e := all(); e.ID != "2" {
		t.Errorf("then came %+v", e)
	}
	if e := all(); e.Name != "" {
		t.Errorf("after the end came %+v", e)
	}
	if e := w.Events("/v1/asp/inbox/events", w.Tokens[cron], delivered.ID)(); !strings.Contains(e.Data, `"sequenceNumber":2`) {
		t.Errorf("the resumed inbox has %+v", e)
	}
	for _, since := range []string{"3", "4", "9007199254740991"} {
		if a := w.Send("GET", path+"/events?since_sequence="+since, w.Tokens[cron], ""); a.StatusCode != http.StatusNoContent {
			t.Errorf("a session that is over is answered %d from %s on", a.StatusCode, since)
		}
	}
	if e := beyond(); e.Name != "" {
		t.Errorf("a stream from beyond the end has %+v", e)
	}
}

// GATEWAYS.md G1, G2: a removed token's streams end at once, at every broker.
func TestRemovedTokenElsewhere(t *testing.T) {
	t.Parallel()
	o := testkit.Configured(t)
	w := testkit.NewHosted(t, o)
	o.HTTP = "127.0.0.1:0"
	there := world{&testkit.World{TB: t, Broker: testkit.StartBroker(t, o), Ctx: w.Ctx}}
	var opened api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, seller)).Is(http.StatusCreated, &opened)
	path := "/v1/asp/sessions/" + string(opened.Session)
	there.Send("GET", path, w.Tokens[seller], "").Is(http.StatusOK, nil)
	there.Send("GET", path, w.Tokens[other], "").Refused(http.StatusNotFound, session.UnknownSession)
	removed, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: seller, ReadOnly: true})
	testkit.Must(t, err)
	inbox, events := there.Events("/v1/asp/inbox/events", removed.Token, ""), there.Events(path+"/events?since_sequence=1", removed.Token, "")
	socket := there.socket(opened.Session, removed.Token, `,"lastSequence":0`)
	socket.next("auth_ok")
	var seen api.WaitedTurn
	there.Send("POST", "/v1/asp/turns/wait", removed.Token, `{"seconds":1}`).Is(http.StatusOK, &seen)
	waits := make(chan testkit.Answer, 1)
	go func() {
		waits <- there.Send("POST", "/v1/asp/turns/wait", removed.Token, fmt.Sprintf(`{"seconds":50,"since":%q}`, seen.Cursor))
	}()
	_, err = w.OperatorClient().RemoveToken(w.Ctx, removed.ID)
	testkit.Must(t, err)
	(<-waits).Refused(http.StatusUnauthorized, session.Unauthorized)
	for _, next := range []func() testkit.Event{inbox, events} {
		if e := next(); e != (testkit.Event{}) {
			t.Errorf("a removed token is sent %+v", e)
		}
	}
	socket.closes(4001)
	there.Send("GET", path, removed.Token, "").Refused(http.StatusUnauthorized, session.Unauthorized)
}

// docs/AGENTS.md: its lines run as they stand, with curl alone.
func TestAgentsPage(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	testkit.Must(t, err)
	page, err := os.ReadFile("../../docs/AGENTS.md")
	testkit.Must(t, err)
	w := testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0"})
	var script strings.Builder
	script.WriteString("set -eu\ncurl() { " + curl + " --fail-with-body \"$@\"; echo; }\n")
	blocks := regexp.MustCompile("(?s)```sh run\n(.*?)```").FindAllSubmatch(page, -1)
	for _, b := range blocks {
		script.Write(b[1])
	}
	run := exec.CommandContext(w.Ctx, "bash", "-c", strings.ReplaceAll(script.String(), "127.0.0.1:8080", w.HTTPAddr))
	out, err := run.CombinedOutput()
	for _, want := range []string{`"duplicate":true`, `"state":"CLOSED"`, `"state":"INTRODUCED"`, "\n204\n"} {
		if err != nil || len(blocks) < 6 || !bytes.Contains(out, []byte(want)) {
			t.Errorf("the page has %d blocks, and no %q: %v\n%s", len(blocks), want, err, out)
		}
	}
}

// What is open to everybody, and what has no valid token, is charged to the address that asks.
func TestAnonymousIsCharged(t *testing.T) {
	t.Parallel()
	charged, service := 0, idle{}.service()
	service.Now = time.Now
	served := httptest.NewServer(httpgateway.New(httpgateway.Options{Service: service, Allow: func(*http.Request) bool {
		charged++
		return charged <= 4
	}}))
	t.Cleanup(served.Close)
	get := func(path, token string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, served.URL+path, nil)
		testkit.Must(t, err)
		if token != "" {
			r.Header.Set("Authorization", token)
		}
		answer, err := http.DefaultClient.Do(r)
		testkit.Must(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	for n, want := range []int{http.StatusOK, http.StatusOK, http.StatusOK, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusTooManyRequests, http.StatusTooManyRequests} {
		path := []string{"/v1/asp", "/openapi.json", "/v1/asp/openapi.json", "/v1/asp/sessions"}[n%4]
		if got := get(path, ""); got != want {
			t.Errorf("request %d, %s: %d, want %d", n, path, got, want)
		}
	}
	if got := get("/v1/asp/sessions", "Bearer t"); got == http.StatusTooManyRequests || charged != 7 {
		t.Errorf("with a token: %d, and %d requests are charged to the address", got, charged)
	}
}
