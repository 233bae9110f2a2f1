package testkit

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Agents that [NewHosted] hosts. Other has no part in what the two do.
const (
	Cron   = performatives.Agent("agent://acme.com/cron")
	Seller = performatives.Agent("agent://widgets.co/seller")
	Other  = performatives.Agent("agent://other.io/spy")
)

// NewHosted is a world with HTTP in which Cron, Seller and Other are hosted and have tokens.
func NewHosted(t testing.TB, o Options) *World {
	t.Helper()
	o.HTTP = "127.0.0.1:0"
	w := NewWorld(t, o)
	for _, a := range []performatives.Agent{Cron, Seller, Other} {
		_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: a})
		Must(t, err)
		w.Tokens[a] = w.Token(api.AddToken{Agent: a})
	}
	return w
}

// Token makes a token.
func (w *World) Token(q api.AddToken) string {
	w.Helper()
	made, err := w.OperatorClient().AddToken(w.Ctx, q)
	Must(w, err)
	return made.Token
}

// Send sends a request over HTTP, again while the broker is unavailable; change alters it first.
func (w *World) Send(method, path, token, body string, change ...func(*http.Request)) Answer {
	w.Helper()
	return Do(w, func() *http.Request {
		r, err := http.NewRequestWithContext(w.Ctx, method, "http://"+w.HTTPAddr+path, strings.NewReader(body))
		Must(w, err)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		for _, c := range change {
			c(r)
		}
		return r
	})
}

// CallTool sends a message that calls a tool of MCP, among all tools.
func (w *World) CallTool(token, message string) Answer {
	w.Helper()
	return w.Send("POST", "/mcp?tools=all", token, message, func(r *http.Request) {
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	})
}

// Is reads an answer that must have this status.
func (a Answer) Is(status int, into any) {
	a.Helper()
	if a.StatusCode != status {
		a.Fatalf("answered %d, want %d: %s", a.StatusCode, status, a.Body)
	}
	if into != nil {
		Must(a, json.Unmarshal(a.Body, into))
	}
}

// Refused asserts that an answer is a problem document (RFC 9457) of this code.
func (a Answer) Refused(status int, code session.Code) {
	a.Helper()
	var p struct {
		Type, Title, Detail, Code, Category string
		Status                              int
	}
	if err := json.Unmarshal(a.Body, &p, json.MatchCaseInsensitiveNames(true)); err != nil || a.StatusCode != status || p.Status != status ||
		p.Code != string(code) || p.Type != "urn:asp:error:"+string(code) || p.Detail == "" || a.Header.Get("Content-Type") != "application/problem+json" {
		a.Errorf("answered %d %s, want %d %s: %s", a.StatusCode, a.Header.Get("Content-Type"), status, code, a.Body)
	}
}

// An Event is one server-sent event; the zero Event is the end of its stream.
type Event struct{ Name, ID, Data string }

// Events opens a stream and returns what reads its next event.
func (w *World) Events(path, token, last string) func() Event {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, "http://"+w.HTTPAddr+path, nil)
	Must(w, err)
	r.Header.Set("Authorization", "Bearer "+token)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	return w.EventsOf(r)
}

// EventsOf sends a request that is answered with a stream, and returns what reads its next event.
func (w *World) EventsOf(r *http.Request) func() Event {
	w.Helper()
	reply, err := http.DefaultClient.Do(r)
	Must(w, err)
	w.Cleanup(func() { reply.Body.Close() })
	if reply.StatusCode != http.StatusOK {
		w.Fatalf("%s is answered %s", r.URL.Path, reply.Status)
	}
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 1<<20)
	return func() (e Event) {
		w.Helper()
		for lines.Scan() {
			switch field, value, _ := strings.Cut(lines.Text(), ": "); {
			case lines.Text() == "" && e != Event{}:
				return e
			case field == "event":
				e.Name = value
			case field == "id":
				e.ID = value
			case field == "data":
				e.Data = value
			}
		}
		return e
	}
}

// SessionPath is the path of a session.
func SessionPath(id performatives.SessionID) string { return "/v1/asp/sessions/" + string(id) }

// Assessed is the member that each act has in bilateral/1.
const Assessed = `"assessment":{"reasoning":"it fits","suggestedRoles":{"ownUser":"patient","otherUser":"agent"}}`

// Invite has Cron invite Seller to a session in bilateral/1; terms are members of its terms.
func (w *World) Invite(terms string) performatives.SessionID {
	w.Helper()
	var opened api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[Cron], fmt.Sprintf(`{"with":[%q],"purpose":"buy cups","mode":"bilateral/1","terms":{%s}}`, Seller, terms)).
		Is(http.StatusCreated, &opened)
	return opened.Session
}

// Match opens a session in bilateral/1 of Cron with Seller, who accepts the invitation.
func (w *World) Match() performatives.SessionID {
	w.Helper()
	id := w.Invite(`"invitationTimeoutMs":600000`)
	w.Send("POST", SessionPath(id)+"/messages", w.Tokens[Seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).Is(http.StatusOK, nil)
	return id
}

// PickUp picks up a turn that must be there.
func (w *World) PickUp(token string) (turn api.Turn) {
	w.Helper()
	w.Send("POST", "/v1/asp/turns/pickup", token, `{}`).Is(http.StatusOK, &turn)
	return turn
}

// Respond answers the turn of a claim or of a session.
func (w *World) Respond(turn, token, body string) Answer {
	w.Helper()
	return w.Send("POST", "/v1/asp/turns/"+turn+"/respond", token, body)
}
