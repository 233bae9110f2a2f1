package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/archive"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

const (
	cron   = performatives.Agent("agent://acme.com/cron")
	seller = performatives.Agent("agent://widgets.co/seller")
	other  = performatives.Agent("agent://other.io/spy")
)

// An httpWorld is a broker with hosted agents and their tokens.
type httpWorld struct {
	*testkit.World
	tokens map[performatives.Agent]string
}

func newHTTPWorld(t *testing.T, o testkit.Options) httpWorld {
	t.Helper()
	o.HTTP = "127.0.0.1:0"
	w := httpWorld{testkit.NewWorld(t, o), map[performatives.Agent]string{}}
	for _, a := range []performatives.Agent{cron, seller, other} {
		_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: a})
		testkit.Must(t, err)
		w.tokens[a] = w.token(api.AddToken{Agent: a})
	}
	return w
}

func (w httpWorld) token(q api.AddToken) string {
	w.Helper()
	made, err := w.OperatorClient().AddToken(w.Ctx, q)
	testkit.Must(w, err)
	return made.Token
}

// An answer is what HTTP answered.
type answer struct {
	testing.TB
	status int
	header http.Header
	body   []byte
}

// send sends a request, again while the broker is unavailable; change alters it first.
func (w httpWorld) send(method, path, token, body string, change ...func(*http.Request)) answer {
	w.Helper()
	for {
		r, err := http.NewRequestWithContext(w.Ctx, method, "http://"+w.HTTPAddr+path, strings.NewReader(body))
		testkit.Must(w, err)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		for _, c := range change {
			c(r)
		}
		reply, err := http.DefaultClient.Do(r)
		testkit.Must(w, err)
		data, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		testkit.Must(w, err)
		if reply.StatusCode != http.StatusServiceUnavailable {
			return answer{w.TB, reply.StatusCode, reply.Header, data}
		}
	}
}

// is reads an answer that must have this status.
func (a answer) is(status int, into any) {
	a.Helper()
	if a.status != status {
		a.Fatalf("answered %d, want %d: %s", a.status, status, a.body)
	}
	if into != nil {
		testkit.Must(a, json.Unmarshal(a.body, into))
	}
}

// refused asserts a problem document (RFC 9457).
func (a answer) refused(status int, code session.Code) {
	a.Helper()
	var p struct {
		Type, Title, Detail, Code, Category string
		Status                              int
	}
	if err := json.Unmarshal(a.body, &p, json.MatchCaseInsensitiveNames(true)); err != nil || a.status != status || p.Status != status ||
		p.Code != string(code) || p.Type != "urn:asp:error:"+string(code) || p.Detail == "" || a.header.Get("Content-Type") != "application/problem+json" {
		a.Errorf("answered %d %s, want %d %s: %s", a.status, a.header.Get("Content-Type"), status, code, a.body)
	}
}

func key(k string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Idempotency-Key", k) }
}

// GATEWAYS.md G2: hosted agents negotiate over HTTP alone, retries are answered with the
// first acceptance, also after a restart, and the transcript says who holds the keys.
func TestHTTPNegotiation(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	opening := fmt.Sprintf(`{"with":[%q],"purpose":"buy cups","terms":{"invitationTimeoutMs":600000}}`, seller)
	var opened, again api.Acceptance
	first := w.send("POST", "/v1/asp/sessions", w.tokens[cron], opening, key("k1"))
	first.is(http.StatusCreated, &opened)
	if got, want := first.header.Get("Location"), "/v1/asp/sessions/"+string(opened.Session); got != want {
		t.Errorf("Location is %q, want %q", got, want)
	}
	path := "/v1/asp/sessions/" + string(opened.Session)
	w.send("POST", "/v1/asp/sessions", w.tokens[cron], strings.Replace(opening, "cups", "mugs", 1), key("k1")).refused(http.StatusConflict, session.Duplicate)

	w.Down()
	w.Up()
	w.send("POST", "/v1/asp/sessions", w.tokens[cron], opening, key("k1")).is(http.StatusCreated, &again)
	if !again.Duplicate || again.Message != opened.Message || again.Session != opened.Session {
		t.Errorf("a retry is answered %+v, the first %+v", again, opened)
	}

	accept := `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`
	w.send("POST", path+"/messages", w.tokens[other], accept).refused(http.StatusNotFound, session.UnknownSession)
	w.send("POST", path+"/messages", w.tokens[seller], accept).is(http.StatusOK, nil)
	offer := fmt.Sprintf(`{"performative":"PROPOSE","messageId":%q,"body":{"proposalId":"p","type":"service-agreement","subject":"cups","terms":{"price":5}}}`, testkit.NewID())
	var offered api.Acceptance
	w.send("POST", path+"/messages", w.tokens[seller], offer, key("k2")).is(http.StatusOK, &offered)
	for _, retry := range []func(*http.Request){key("k2"), key("k3"), func(*http.Request) {}} { // the messageId is enough
		w.send("POST", path+"/messages", w.tokens[seller], offer, retry).is(http.StatusOK, &again)
		if !again.Duplicate || again.Sequence != offered.Sequence {
			t.Errorf("the same messageId again is answered %+v", again)
		}
	}
	w.send("POST", path+"/messages", w.tokens[seller], strings.Replace(offer, "5", "6", 1)).refused(http.StatusConflict, session.Duplicate)

	var page api.Messages
	w.send("GET", path+"/messages?since_sequence=1&limit=1", w.tokens[cron], "").is(http.StatusOK, &page)
	if len(page.Messages) != 1 || page.Next == nil || *page.Next != 2 {
		t.Errorf("the page is %s, next %v", page.Messages, page.Next)
	}
	if one := w.send("GET", path+"/messages/"+string(offered.Message), w.tokens[cron], ""); one.status != http.StatusOK || !bytes.Contains(one.body, []byte(offered.Hash)) {
		t.Errorf("one message is %d %s", one.status, one.body)
	}
	w.send("GET", path+"/messages/"+string(testkit.NewID()), w.tokens[cron], "").refused(http.StatusNotFound, session.UnknownSession)
	var view api.SessionView
	w.send("GET", path, w.tokens[cron], "").is(http.StatusOK, &view)
	for _, p := range view.Participants {
		if p.Custody != performatives.Hosted {
			t.Errorf("the custody of the key of %s is %q", p.Agent, p.Custody)
		}
	}
	w.send("GET", "/v1/asp/sessions?awaiting=me", w.tokens[cron], "").is(http.StatusOK, nil)
	w.send("DELETE", path, w.tokens[cron], `{"outcome":"completed","summary":"done"}`).is(http.StatusOK, &again)
	if again.State != session.Closed {
		t.Errorf("after DELETE the session is %s", again.State)
	}
}

// GATEWAYS.md G1: who signs for itself sends envelopes, and nobody signs for it.
func TestHTTPSigned(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	alpha := w.Principal(performatives.Agent("agent://acme.com/alpha"))
	token := w.token(api.AddToken{Agent: alpha.Agent})
	id := testkit.NewSession()
	envelope := alpha.Envelope(id, &performatives.ProposeBody{
		ProposalID: "i", Type: performatives.SessionInvitation, Subject: "s", Terms: []byte(fmt.Sprintf(`{"purpose":"p","participants":[%q]}`, seller)),
	})
	signed := func(r *http.Request) { r.Header.Set("Content-Type", "application/asp+json") }
	w.send("POST", "/v1/asp/sessions", token, string(envelope), signed).is(http.StatusCreated, nil)
	w.send("POST", "/v1/asp/sessions/"+string(id)+"/messages", token, `{"performative":"OBSERVE","body":{"subject":"x"}}`).refused(http.StatusForbidden, session.Unauthorized)
	w.send("POST", "/v1/asp/sessions", w.tokens[cron], string(envelope), signed).refused(http.StatusForbidden, session.Unauthorized)
	w.send("POST", "/v1/asp/sessions", token, "{", signed).refused(http.StatusBadRequest, session.MalformedEnvelope)

	proof := api.ProveToken{Agent: alpha.Agent, Timestamp: time.Now().UTC().Format(time.RFC3339Nano), Audience: w.Key()}
	bytesOf, err := proof.SigningBytes()
	testkit.Must(t, err)
	proof.Signature, err = performatives.SignBytes(alpha.Signer, bytesOf)
	testkit.Must(t, err)
	data, err := json.Marshal(proof)
	testkit.Must(t, err)
	var made api.Token
	w.send("POST", "/v1/asp/token", "", string(data)).is(http.StatusCreated, &made)
	w.send("GET", "/v1/asp/sessions", made.Token, "").is(http.StatusOK, nil)
	w.send("POST", "/v1/asp/token", "", string(data)).refused(http.StatusForbidden, session.Unauthorized)
}

// Each bad request has a clear answer, and strangers learn nothing.
func TestHTTPRefusals(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{HTTPOrigins: []string{"https://acme.com"}})
	var opened api.Acceptance
	w.send("POST", "/v1/asp/sessions", w.tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, seller)).is(http.StatusCreated, &opened)
	of, none := "/v1/asp/sessions/"+string(opened.Session), "/v1/asp/sessions/"+string(testkit.NewSession())
	act := `{"performative":"OBSERVE","body":{"subject":"x"}}`
	for _, ask := range []struct{ method, path, body string }{{"GET", "", ""}, {"GET", "/messages", ""}, {"POST", "/messages", act}, {"DELETE", "", "{}"}} {
		a, b := w.send(ask.method, of+ask.path, w.tokens[other], ask.body), w.send(ask.method, none+ask.path, w.tokens[other], ask.body)
		a.refused(http.StatusNotFound, session.UnknownSession)
		a.header.Del("Date")
		b.header.Del("Date")
		if !bytes.Equal(a.body, b.body) || fmt.Sprint(a.header) != fmt.Sprint(b.header) {
			t.Errorf("%s %s tells a stranger\n%s %v, and of no session\n%s %v", ask.method, ask.path, a.body, a.header, b.body, b.header)
		}
	}

	readOnly := w.token(api.AddToken{Agent: cron, ReadOnly: true})
	w.send("GET", of, readOnly, "").is(http.StatusOK, nil)
	w.send("POST", of+"/messages", readOnly, act).refused(http.StatusForbidden, session.Unauthorized)
	gone, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: cron})
	testkit.Must(t, err)
	_, err = w.OperatorClient().RemoveToken(w.Ctx, gone.ID)
	testkit.Must(t, err)
	for _, token := range []string{"", "parley_x_y", gone.Token, string(cron), strings.ToUpper(w.tokens[cron])} {
		a := w.send("GET", of, token, "")
		a.refused(http.StatusUnauthorized, session.Unauthorized)
		if a.header.Get("WWW-Authenticate") == "" {
			t.Error("a 401 without WWW-Authenticate")
		}
	}
	w.send("GET", of+"?access_token="+w.tokens[cron], "", "").refused(http.StatusUnauthorized, session.Unauthorized)
	w.send("GET", of+"?access_token="+w.tokens[cron], w.tokens[cron], "").refused(http.StatusUnauthorized, session.Unauthorized)

	send := func(method, path, body string, change ...func(*http.Request)) answer {
		return w.send(method, path, w.tokens[cron], body, change...)
	}
	kind := func(k string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Content-Type", k) }
	}
	for _, bad := range []string{"{", `[]`, `{"performative":"OBSERVE","performative":"CLOSE"}`, `{"performatif":"OBSERVE"}`, "{\"performative\":\"\xff\"}", `{"performative":7}`, `null`, ``} {
		send("POST", of+"/messages", bad).refused(http.StatusBadRequest, session.MalformedEnvelope)
	}
	for _, no := range []string{"null", "[]", "1"} {
		send("PUT", "/v1/asp/agents/"+url.PathEscape(string(cron))+"/card", no).refused(http.StatusBadRequest, session.MalformedEnvelope)
		send("POST", "/v1/asp/escalations/x/claim", no).refused(http.StatusBadRequest, session.MalformedEnvelope)
		send("DELETE", of, no).refused(http.StatusBadRequest, session.MalformedEnvelope)
	}
	send("POST", of+"/messages", `{"performative":"SHOUT","body":{}}`).refused(http.StatusBadRequest, session.UnknownPerformative)
	send("POST", of+"/messages", act, kind("text/plain")).refused(http.StatusUnsupportedMediaType, session.MalformedEnvelope)
	send("POST", of+"/messages", act, kind("application/x-www-form-urlencoded")).refused(http.StatusUnsupportedMediaType, session.MalformedEnvelope)
	send("POST", of+"/messages", strings.Repeat(" ", 300<<10)+act).refused(http.StatusRequestEntityTooLarge, session.TooLarge)
	send("POST", of+"/messages", act, key(strings.Repeat("k", 256))).refused(http.StatusBadRequest, session.MalformedEnvelope)
	for _, bad := range []string{"?limit=x", "?limit=0", "?limit=-1", "?limit=1&limit=2", "?since=%zz", "?surprise=1", "?since_sequence=1&cursor=2"} {
		send("GET", of+"/messages"+bad, "").refused(http.StatusBadRequest, session.MalformedEnvelope)
	}
	send("GET", "/v1/asp/sessions?state=NEVER", "").refused(http.StatusBadRequest, session.MalformedEnvelope)
	for _, path := range []string{"/nothing", "", "/", "//sessions", "/sessions/../sessions", "/sessions/", "/agents/" + string(seller) + "/card", "/sessions%2F"} {
		send("GET", "/v1/asp"+path, "").refused(http.StatusNotFound, session.MalformedEnvelope)
	}
	for missing, body := range map[string]string{"/with": `{"purpose":"x"}`, "/purpose": `{"with":["agent://widgets.co/seller"]}`} {
		a := send("POST", "/v1/asp/sessions", body)
		a.refused(http.StatusBadRequest, session.MalformedEnvelope)
		if !strings.Contains(string(a.body), `"`+missing+`: is missing"`) {
			t.Errorf("without %s: %s", missing, a.body)
		}
	}
	if a := send("GET", of+"/events", "", func(r *http.Request) { r.Header.Set("Last-Event-ID", "x") }); !strings.Contains(string(a.body), `"path":"/Last-Event-ID"`) {
		t.Errorf("a bad Last-Event-ID is answered %s", a.body)
	}
	if a := send("HEAD", of+"/events", ""); a.status != http.StatusOK || a.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD of events is answered %d %v", a.status, a.header)
	}
	if a := send("PUT", of, "{}"); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "GET, DELETE" {
		t.Errorf("PUT of a session is answered %d, Allow %q", a.status, a.header.Get("Allow"))
	}
	send("GET", "/v1/asp/agents/"+url.PathEscape("agent://no.where/x")+"/card", "").refused(http.StatusNotFound, session.UnknownAgent)
	send("GET", "/v1/asp/agents/"+url.PathEscape(string(seller))+"/card", "").is(http.StatusOK, nil)
	send("PUT", "/v1/asp/agents/"+url.PathEscape(string(seller))+"/card", `{"name":"x"}`).refused(http.StatusForbidden, session.Unauthorized)
	send("PUT", "/v1/asp/agents/"+url.PathEscape(string(cron))+"/card", `{"name":"Cron\r\nX: y"}`).is(http.StatusOK, nil)

	from := func(origin string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Origin", origin)
			r.Header.Set("Access-Control-Request-Method", "POST")
		}
	}
	if a := w.send("OPTIONS", of+"/messages", "", "", from("https://acme.com")); a.status != http.StatusNoContent || a.header.Get("Access-Control-Allow-Origin") != "https://acme.com" {
		t.Errorf("the preflight of a listed origin is answered %d %v", a.status, a.header)
	}
	if a := w.send("OPTIONS", of+"/messages", "", "", from("https://evil.com")); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("the preflight of another origin is answered %d %v", a.status, a.header)
	}
}

// HTTP/2 is spoken without TLS too, by a client that knows so.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, "http://"+w.HTTPAddr+"/v1/asp/inbox/events", nil)
	testkit.Must(t, err)
	r.Header.Set("Authorization", "Bearer "+w.tokens[cron])
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
	w := testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0"})
	h := httpWorld{w, nil}
	var opened api.Acceptance
	h.send("POST", "/v1/asp/sessions", string(cron)+"#one", fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, seller)).is(http.StatusCreated, &opened)
	h.send("GET", "/v1/asp/sessions/"+string(opened.Session), string(seller), "").is(http.StatusOK, nil)
	h.send("GET", "/v1/asp/sessions", "agent://", "").refused(http.StatusUnauthorized, session.Unauthorized)
	h.send("GET", "/v1/asp/sessions", string(cron), "", func(r *http.Request) { r.Host = "evil.com" }).refused(http.StatusForbidden, session.Unauthorized)
	var described struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]any
	}
	h.send("GET", "/openapi.json", "", "").is(http.StatusOK, &described)
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
	a, b := h.send("GET", "/openapi.json", "", ""), h.send("GET", "/v1/asp/openapi.json", "", "")
	if !bytes.Equal(a.body, b.body) {
		t.Error("the two descriptions differ")
	}
}

// GATEWAYS.md G2: entries come as they are accepted, a stream resumes without a gap, also at
// another broker's cursor, and ends with the session, or when its token is removed.
func TestHTTPEvents(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{Archive: archive.Policy{After: time.Hour}})
	var opened, sent api.Acceptance
	w.send("POST", "/v1/asp/sessions", w.tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, seller)).is(http.StatusCreated, &opened)
	path := "/v1/asp/sessions/" + string(opened.Session)
	removed, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: cron, ReadOnly: true})
	testkit.Must(t, err)
	w.send("GET", path+"/events", w.tokens[other], "").refused(http.StatusNotFound, session.UnknownSession)

	inbox, all, second := w.events("/v1/asp/inbox/events", w.tokens[cron], ""), w.events(path+"/events", w.tokens[cron], ""), w.events(path+"/events", removed.Token, "0")
	beyond := w.events(path+"/events?since_sequence=100", w.tokens[cron], "")
	if e := all(); e.name != "session_state" || !strings.HasPrefix(e.data, `{"state":"INVITED","previous":"IDLE",`) {
		t.Errorf("first came %+v", e)
	}
	if e := all(); e.name != "message" || e.id != "0" {
		t.Errorf("then came %+v", e)
	}
	w.send("POST", path+"/messages", w.tokens[seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).is(http.StatusOK, &sent)
	for name, next := range map[string]func() event{"all": all, "second": second} {
		if e := next(); e.name != "session_state" || !strings.Contains(e.data, `"previous":"INVITED"`) {
			t.Errorf("%s: then came %+v", name, e)
		}
		if e := next(); e.id != "1" || !strings.Contains(e.data, string(sent.Hash)) {
			t.Errorf("%s: then came %+v", name, e)
		}
	}
	delivered := inbox()
	if delivered.name != "message" || !strings.Contains(delivered.data, string(sent.Hash)) {
		t.Errorf("the inbox has %+v", delivered)
	}
	_, err = w.OperatorClient().RemoveToken(w.Ctx, removed.ID)
	testkit.Must(t, err)
	if e := second(); e.name != "" {
		t.Errorf("a removed token hears %+v", e)
	}
	w.send("DELETE", path, w.tokens[seller], "").is(http.StatusOK, nil)
	if e := all(); !strings.Contains(e.data, "CLOSED") {
		t.Errorf("then came %+v", e)
	}
	if e := all(); e.id != "2" {
		t.Errorf("then came %+v", e)
	}
	if e := all(); e.name != "" {
		t.Errorf("after the end came %+v", e)
	}
	if e := w.events("/v1/asp/inbox/events", w.tokens[cron], delivered.id)(); !strings.Contains(e.data, `"sequenceNumber":2`) {
		t.Errorf("the resumed inbox has %+v", e)
	}
	for _, since := range []string{"3", "4", "9007199254740991"} {
		if a := w.send("GET", path+"/events?since_sequence="+since, w.tokens[cron], ""); a.status != http.StatusNoContent {
			t.Errorf("a session that is over is answered %d from %s on", a.status, since)
		}
	}
	if e := beyond(); e.name != "" {
		t.Errorf("a stream from beyond the end has %+v", e)
	}
}

// GATEWAYS.md G1, G2: a removed token's streams end at once, at every broker.
func TestRemovedTokenElsewhere(t *testing.T) {
	t.Parallel()
	o := configured(t)
	w := newHTTPWorld(t, o)
	o.HTTP = "127.0.0.1:0"
	there := w
	there.World = &testkit.World{TB: t, Broker: testkit.StartBroker(t, o), Ctx: w.Ctx}
	var opened api.Acceptance
	w.send("POST", "/v1/asp/sessions", w.tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, seller)).is(http.StatusCreated, &opened)
	path := "/v1/asp/sessions/" + string(opened.Session)
	there.send("GET", path, w.tokens[seller], "").is(http.StatusOK, nil)
	there.send("GET", path, w.tokens[other], "").refused(http.StatusNotFound, session.UnknownSession)
	removed, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: seller, ReadOnly: true})
	testkit.Must(t, err)
	inbox, events := there.events("/v1/asp/inbox/events", removed.Token, ""), there.events(path+"/events?since_sequence=1", removed.Token, "")
	socket := there.socket(opened.Session, removed.Token, `,"lastSequence":0`)
	socket.next("auth_ok")
	_, err = w.OperatorClient().RemoveToken(w.Ctx, removed.ID)
	testkit.Must(t, err)
	for _, next := range []func() event{inbox, events} {
		if e := next(); e != (event{}) {
			t.Errorf("a removed token hears %+v", e)
		}
	}
	socket.closes(4001)
	there.send("GET", path, removed.Token, "").refused(http.StatusUnauthorized, session.Unauthorized)
}

// An event is one server-sent event; the zero event is the end of its stream.
type event struct{ name, id, data string }

// events opens a stream and returns what reads its next event.
func (w httpWorld) events(path, token, last string) func() event {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, "http://"+w.HTTPAddr+path, nil)
	testkit.Must(w, err)
	r.Header.Set("Authorization", "Bearer "+token)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	return w.eventsOf(r)
}

// eventsOf sends a request that is answered with a stream, and returns what reads its next event.
func (w httpWorld) eventsOf(r *http.Request) func() event {
	w.Helper()
	reply, err := http.DefaultClient.Do(r)
	testkit.Must(w, err)
	w.Cleanup(func() { reply.Body.Close() })
	if reply.StatusCode != http.StatusOK {
		w.Fatalf("%s is answered %s", r.URL.Path, reply.Status)
	}
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 1<<20)
	return func() (e event) {
		w.Helper()
		for lines.Scan() {
			switch field, value, _ := strings.Cut(lines.Text(), ": "); {
			case lines.Text() == "" && e != event{}:
				return e
			case field == "event":
				e.name = value
			case field == "id":
				e.id = value
			case field == "data":
				e.data = value
			}
		}
		return e
	}
}

// docs/HTTP.md and docs/TURNS.md: their lines run as they stand, with curl alone.
func TestHTTPPages(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	testkit.Must(t, err)
	for name, wants := range map[string][]string{
		"HTTP.md": {`"duplicate":true`, `"state":"CLOSED"`}, "TURNS.md": {`"state":"INTRODUCED"`, "\n204\n"},
	} {
		page, err := os.ReadFile("../docs/" + name)
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
		for _, want := range wants {
			if err != nil || len(blocks) < 2 || !bytes.Contains(out, []byte(want)) {
				t.Errorf("%s has %d blocks, and no %q: %v\n%s", name, len(blocks), want, err, out)
			}
		}
	}
}
