package httpgateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A refusal says what would have been taken instead.
func TestRefusalsHelp(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{})
	id := w.Match()
	opening := fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, seller)
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], opening, key("again")).Is(http.StatusCreated, nil)
	for name, tt := range map[string]struct {
		method, path, body string
		status             int
		code               session.Code
		says               string
	}{
		"a parameter misspelt":      {"GET", "/v1/asp/sessions?stat=CLOSED", "", 400, session.MalformedEnvelope, "/stat: the path takes no such parameter; it takes awaiting, cursor, limit, "},
		"one of a stream":           {"GET", testkit.SessionPath(id) + "/events?since=1", "", 400, session.MalformedEnvelope, "/since: the path takes no such parameter; it takes since_sequence"},
		"one where there are none":  {"GET", "/v1/asp/sessions/" + string(id) + "/messages/" + string(testkit.NewID()) + "?limit=1", "", 400, session.MalformedEnvelope, "/limit: the path takes no such parameter; it takes none"},
		"a limit in words":          {"GET", "/v1/asp/sessions?limit=abc", "", 400, session.MalformedEnvelope, "/limit: is not a whole number from 1 to 200"},
		"a limit of nothing":        {"GET", "/v1/asp/sessions?limit=0", "", 400, session.MalformedEnvelope, "/limit: is not a whole number from 1 to 200"},
		"a sequence below 0":        {"GET", testkit.SessionPath(id) + "/messages?since_sequence=-1", "", 400, session.MalformedEnvelope, "/since_sequence: is not a whole number from 0 to 9007199254740991"},
		"a trust in words":          {"GET", "/v1/asp/agents?min_trust=much", "", 400, session.MalformedEnvelope, "/min_trust: is not a number"},
		"a member misspelt":         {"POST", "/v1/asp/sessions", `{"with":[],"purpose":"x","goal":"y"}`, 400, session.MalformedEnvelope, "/goal: is not taken here; there is with, purpose, subject, mode, terms, validUntil"},
		"a member of an act":        {"POST", testkit.SessionPath(id) + "/messages", `{"performative":"ACCEPT","reference":"p1"}`, 400, session.MalformedEnvelope, "/reference: is not taken here; there is performative, body, recipient, constraints, messageId"},
		"JSON with a colon missing": {"POST", "/v1/asp/sessions", "{\"with\": [],\n \"purpose\" \"x\"}", 400, session.MalformedEnvelope, "not well-formed JSON, at line 2, column 12"},
		"terms of its own":          {"POST", "/v1/asp/sessions", `{"with":["agent://widgets.co/beta"],"purpose":"x","terms":{"participants":["agent://court.org/judge"]}}`, 400, session.MalformedEnvelope, "/terms/participants: is not what the request says beside its terms"},
		"an envelope's size":        {"POST", testkit.SessionPath(id) + "/messages", `{"performative":"OBSERVE","body":{"x":"` + strings.Repeat("x", 256<<10) + `"}}`, 413, session.TooLarge, `"maxBytes":262144`},
		"another act under a key":   {"POST", "/v1/asp/sessions", strings.Replace(opening, "x", "y", 1), 409, session.Duplicate, "this Idempotency-Key was used before"},
	} {
		a := w.Send(tt.method, tt.path, w.Tokens[cron], tt.body, key("again"))
		a.Refused(tt.status, tt.code)
		if !strings.Contains(string(a.Body), tt.says) {
			t.Errorf("%s: %s, want %q", name, a.Body, tt.says)
		}
	}
	message := fmt.Sprintf(`{"performative":"QUERY","messageId":%q,"body":{"queryId":"%%s","queryType":"capability"}}`, testkit.NewID())
	first := w.Send("POST", testkit.SessionPath(id)+"/messages", w.Tokens[cron], fmt.Sprintf(message, "q1"))
	if second := w.Send("POST", testkit.SessionPath(id)+"/messages", w.Tokens[cron], fmt.Sprintf(message, "q2")); first.StatusCode == http.StatusOK &&
		!strings.Contains(string(second.Body), "this messageId was used before") {
		t.Errorf("another act under a messageId: %s", second.Body)
	}
	a := w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], opening, func(r *http.Request) { r.Header["Idempotency-Key"] = []string{"a", "b"} })
	if a.Refused(http.StatusBadRequest, session.MalformedEnvelope); !strings.Contains(string(a.Body), "/Idempotency-Key: is there more than once") {
		t.Errorf("two keys: %s", a.Body)
	}
	var page api.Sessions
	w.Send("GET", "/v1/asp/sessions?limit=1", w.Tokens[cron], "").Is(http.StatusOK, &page)
	if len(page.Sessions) != 1 {
		t.Errorf("with a parameter that it takes: %+v", page)
	}
	over := w.Principal("agent://acme.com/alpha").Call("agent.list", "{\n \"limit\" 1}")
	if !strings.Contains(string(over.Data), "not well-formed JSON, at line 2, column 10") {
		t.Errorf("over NATS: %s", over.Data)
	}
}
