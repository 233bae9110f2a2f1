package conformance

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/test/testkit"
)

// post submits an envelope over HTTP. The answer is printed as that of NATS is.
func (s *stage) post(uri string, envelope []byte) string {
	s.Helper()
	path := "/sessions/" + s.session + "/messages"
	var e struct{ SessionID string }
	if json.Unmarshal(envelope, &e) == nil && e.SessionID == s.session && s.values["hash0"] == "" {
		path = "/sessions"
	}
	a := s.send(http.MethodPost, path, uri, "application/asp+json", envelope)
	if created := a.Header.Get("Location"); path == "/sessions" && a.StatusCode < 300 && (a.StatusCode != http.StatusCreated || created != "/v1/asp/sessions/"+s.session) {
		s.Errorf("what opens the session is answered %d, Location %q", a.StatusCode, created)
	}
	return s.printed(a)
}

// callHTTP calls a verb over HTTP, if it has a path there that can say the request.
func (s *stage) callHTTP(uri, name, request string) (answer string, has bool) {
	s.Helper()
	verb := api.VerbNamed(name)
	if verb.HTTP == "" {
		return "", false
	}
	if verb.Body != "" {
		members := map[string]map[string]any{}
		if json.Unmarshal([]byte(request), &members) == nil && members[verb.Body] != nil && members[verb.Body]["agentId"] == nil {
			members[verb.Body]["agentId"] = uri
			data, err := json.Marshal(members)
			testkit.Must(s.T, err)
			request = string(data)
		}
	}
	path, body, err := verb.OverHTTP([]byte(cmp.Or(request, "{}")))
	if err != nil {
		return "", false // it says nothing that a path needs
	}
	a := s.send(verb.HTTP.Method(), strings.TrimPrefix(path, api.HTTPBase), uri, "application/json", body)
	answer = s.printed(a)
	if strings.Contains(answer, `"code":"malformed"`) {
		// A gateway reads the query itself, and names what is wrong as HTTP does.
		if over := s.request("asp.agent."+token(uri)+".api."+name, []byte(request)); strings.Contains(over, `"code":"malformed"`) {
			return over, true
		}
	}
	return answer, true
}

// send sends a request as a principal, again while the broker is unavailable.
func (s *stage) send(method, path, uri, contentType string, body []byte) testkit.Answer {
	s.Helper()
	return testkit.Do(s, func() *http.Request {
		r, err := http.NewRequestWithContext(s.Context(), method, "http://"+s.broker.HTTPAddr+"/v1/asp"+path, strings.NewReader(string(body)))
		if err != nil {
			s.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+uri)
		if len(body) > 0 {
			r.Header.Set("Content-Type", contentType)
		}
		return r
	})
}

// printed prints an answer as that of NATS is printed: a problem document says the same as
// the error of a refusal (GATEWAYS.md G2).
func (s *stage) printed(a testkit.Answer) string {
	s.Helper()
	if a.StatusCode < 300 {
		if got := a.Header.Get("Content-Type"); got != "application/json" {
			s.Errorf("an answer is %s", got)
		}
		return "< " + s.pretty(a.Body)
	}
	status := strconv.Itoa(a.StatusCode)
	refusal := problem(s.T, a)
	data, err := json.Marshal(map[string]any{"accepted": false, "error": refusal})
	if err != nil {
		s.Fatal(err)
	}
	return "< " + status + " " + s.pretty(data)
}

// problem holds a problem document to its shape (RFC 9457) and returns the error that it tells of.
func problem(t testing.TB, a testkit.Answer) map[string]any {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal(a.Body, &p); err != nil {
		t.Fatalf("a refusal that is no JSON: %q", a.Body)
	}
	e := maps.Clone(p)
	for _, own := range []string{"type", "title", "status", "detail"} {
		delete(e, own)
	}
	e["message"] = p["detail"]
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	code := checkError(t, data)
	if p["type"] != "urn:asp:error:"+code || p["title"] == "" || p["status"] != float64(a.StatusCode) || statuses[code] != strconv.Itoa(a.StatusCode) ||
		a.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("not the problem document of %s: %d %v %s", code, a.StatusCode, a.Header, a.Body)
	}
	if waits := a.StatusCode == http.StatusTooManyRequests || a.StatusCode == http.StatusServiceUnavailable; waits != (a.Header.Get("Retry-After") != "") {
		t.Errorf("%d has Retry-After %q", a.StatusCode, a.Header.Get("Retry-After"))
	}
	if (a.StatusCode == http.StatusUnauthorized) != (a.Header.Get("WWW-Authenticate") != "") {
		t.Errorf("%d has WWW-Authenticate %q", a.StatusCode, a.Header.Get("WWW-Authenticate"))
	}
	return e
}

// hear reads what a principal has not read of /inbox/events, and returns what is of this session.
func (s *stage) hear(ctx context.Context, uri string, _ jetstream.Consumer) (messages [][]byte) {
	unread := s.delivered(ctx, uri) - s.received[uri]
	if unread == 0 {
		return nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.broker.HTTPAddr+"/v1/asp/inbox/events", nil)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+uri)
	r.Header.Set("Last-Event-ID", s.cursors[uri])
	if s.cursors[uri] == "" {
		r.Header.Set("Last-Event-ID", "0")
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer a.Body.Close()
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, 1<<20)
	for unread > 0 {
		if !lines.Scan() {
			s.Fatalf("%d events of %s did not come: %v", unread, uri, lines.Err())
		}
		switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
		case "id":
			s.cursors[uri] = value
		case "data":
			var e struct{ SessionID string }
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				s.Fatal(err)
			}
			if e.SessionID == s.session {
				messages = append(messages, []byte(value))
			}
			unread--
			s.received[uri]++
		}
	}
	return messages
}

// TestNonParticipantsOverHTTP: on every path of the OpenAPI description that names a session or an
// escalation, what there is not and what is of others are answered in the same bytes (PROTOCOL.md §9).
func TestNonParticipantsOverHTTP(t *testing.T) {
	t.Parallel()
	s := &stage{T: t, broker: testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute, HTTP: "127.0.0.1:0"})}
	s.connect()
	s.scene()
	s.submit(`alpha PROPOSE ` + invite(beta))
	s.submit(`beta ACCEPT {"referenceId":"inv"}`)
	s.submit(`alpha ESCALATE {"reason":"policy-ambiguous","urgency":"low","context":"odd"}`)
	var description struct {
		Paths map[string]map[string]struct{}
	}
	if err := json.Unmarshal(s.send(http.MethodGet, "/openapi.json", alpha, "", nil).Body, &description); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, template := range slices.Sorted(maps.Keys(description.Paths)) {
		for method := range description.Paths[template] {
			var answers []string
			for _, ids := range [][3]string{{s.session, s.values["m1"], s.values["m3"]}, {v7(), v7(), v7()}} {
				path := strings.NewReplacer("{sessionId}", ids[0], "{messageId}", ids[1], "{escalationId}", ids[2]).Replace(template)
				if path == template || strings.HasSuffix(path, "/ws") { // a WebSocket says who it is later: gateway/http/websocket_test.go
					continue
				}
				body := map[bool]string{true: `{"performative":"OBSERVE","body":{"subject":"x"}}`, false: `{}`}[strings.HasSuffix(path, "/messages")]
				a := s.send(strings.ToUpper(method), strings.TrimPrefix(path, "/v1/asp"), principals["outsider"], "application/json", []byte(body))
				problem(t, a)
				a.Header.Del("Date")
				answers = append(answers, fmt.Sprint(a.StatusCode, a.Header, string(a.Body)))
			}
			if len(answers) == 0 {
				continue
			}
			if asked++; answers[0] != answers[1] {
				t.Errorf("%s %s tells an outsider\n%s, and of what there is not\n%s", method, template, answers[0], answers[1])
			}
		}
	}
	if asked < 12 {
		t.Errorf("only %d operations name a session or an escalation", asked)
	}
}
