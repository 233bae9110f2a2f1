package bindugateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

const extractor performatives.Agent = "agent://papers.example/extractor"

const shown = `{"id":"ID","agentId":"agent://papers.example/extractor","name":"agent://papers.example/extractor","description":"","url":"http://example.com/bindu/papers_example~extractor","version":"","protocolVersion":"1.0.0","kind":"agent","skills":[],"capabilities":{"negotiation":true,"pushNotifications":false,"streaming":false},"defaultInputModes":["text/plain","application/json"],"defaultOutputModes":["text/plain","application/json"]}`

var cardID = regexp.MustCompile(`"id":"[0-9a-f-]{36}"`)

func serve(t *testing.T, change func(*Options)) *Gateway {
	t.Helper()
	profile := discovery.NewProfile([]discovery.Skill{{ID: "pdf", Name: "PDF", Tags: []string{"pdf", "tables"}}}, jsontext.Value(`{"amount":"0.0005"}`))
	o := Options{
		Card: func(a performatives.Agent) (Card, bool) {
			return Card{Profile: profile, Queue: discovery.QueueDepth(1)}, a == extractor
		},
		Enter: func(*http.Request) (func(), bool) { return func() {}, true },
		Turn:  func(_ *http.Request, work func()) bool { work(); return true },
		Owner: func(performatives.Agent) (func(time.Duration), bool) { return func(time.Duration) {}, true },
	}
	if change != nil {
		change(&o)
	}
	return New(o)
}

// Statuses and texts are Bindu's.
func TestNegotiation(t *testing.T) {
	t.Parallel()
	g := serve(t, nil)
	path := Base + extractor.Token() + "/agent/negotiation"
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", path, `{"task_summary":"extract pdf tables"}`, 200, `{"accepted":true,"score":0.7667,"confidence":0.8,"skill_matches":[{"skill_id":"pdf","skill_name":"PDF","score":0.6667,"reasons":["tags: pdf, tables"]}],"matched_tags":["pdf","tables"],"latency_estimate_ms":5000,"queue_depth":1,"subscores":{"skill_match":0.6667,"io_compatibility":1,"load":0.5,"cost":0.5,"performance":1}}`},
		{"POST", path, `{"task_summary":"pdf","required_tools":["x"]}`, 200, `{"accepted":false,"score":0,"confidence":1,"rejection_reason":"required_tool_missing"}`},
		{"POST", path, `{"task_summary":"pdf","max_cost_amount":"0.0001","unknown":1,"weights":null}`, 200, `{"accepted":false,"score":0,"confidence":0.9,"rejection_reason":"cost_exceeds_budget"}`},
		{"POST", path, `{"task_summary":`, 400, `{"error":"Invalid JSON payload"}`},
		{"POST", path, ``, 400, `{"error":"Invalid JSON payload"}`},
		{"POST", path, `[]`, 400, `{"error":"Invalid JSON payload"}`},
		{"POST", path, `{"task_summary":""}`, 400, `{"error":"'task_summary' is required"}`},
		{"POST", path, `{"task_summary":null}`, 400, `{"error":"'task_summary' is required"}`},
		{"POST", path, `{}`, 400, `{"error":"'task_summary' is required"}`},
		{"POST", path, `{"task_summary":"` + strings.Repeat("ü", 10_001) + `"}`, 400, `{"error":"task_summary exceeds maximum length of 10000 characters"}`},
		{"POST", path, `{"task_summary":"pdf","weights":{"cost":-1,"performance":-2}}`, 400, `{"error":"Invalid weights: Weight 'performance' must be non-negative"}`},
		{"POST", path, `{"task_summary":"pdf","weights":{"cost":"x"}}`, 400, `{"error":"Invalid task: a member has the wrong type"}`},
		{"POST", path, `{"task_summary":"` + strings.Repeat("x", maxBody) + `"}`, 413, `{"error":"The body is too large"}`},
		{"POST", Base + "nobody_example~x/agent/negotiation", `{"task_summary":"pdf"}`, 404, `{"error":"Agent not found"}`},
		{"POST", Base + "%20/agent/negotiation", `{"task_summary":"pdf"}`, 404, `{"error":"Agent not found"}`},
		{"GET", Base + extractor.Token() + "/agent/info", ``, 200, shown},
		{"GET", Base + extractor.Token() + "/.well-known/agent.json", ``, 200, shown},
		{"GET", Base + "nobody_example~x/agent/info", ``, 404, `{"error":"Agent not found"}`},
		{"POST", Base + "x/agent", ``, 404, `{"error":"Not Found"}`},
		{"GET", path, ``, 405, "Method Not Allowed\n"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "text/csv")
		g.ServeHTTP(w, r)
		got := cardID.ReplaceAllString(w.Body.String(), `"id":"ID"`)
		if w.Code != c.status || got != c.want {
			t.Errorf("%s %.80s %.80s: %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
		if c.status == 405 && (w.Header().Get("Allow") != "POST" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain")) {
			t.Error(w.Header())
		}
	}
}

func TestExtensionIsEchoed(t *testing.T) {
	t.Parallel()
	g := serve(t, nil)
	for body, want := range map[string]string{`{"task_summary":"pdf"}`: x402, `{}`: ""} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, Base+extractor.Token()+"/agent/negotiation", strings.NewReader(body))
		r.Header.Set(extensions, "https://other.example, "+x402)
		if g.ServeHTTP(w, r); w.Header().Get(extensions) != want {
			t.Errorf("%s: %v", body, w.Header())
		}
	}
}

func TestLimitsAndTokens(t *testing.T) {
	t.Parallel()
	ask := func(g *Gateway) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, Base+extractor.Token()+"/agent/negotiation", strings.NewReader(`{"task_summary":"pdf"}`)))
		return w
	}
	closed := ask(serve(t, func(o *Options) { o.Admit = func(*http.Request) error { return errors.New("no token") } }))
	if closed.Code != http.StatusUnauthorized || closed.Header().Get("WWW-Authenticate") != "Bearer" {
		t.Error(closed.Code, closed.Header())
	}
	for what, spend := range map[string]func(*Options){
		"often": func(o *Options) { o.Enter = func(*http.Request) (func(), bool) { return nil, false } },
		"much":  func(o *Options) { o.Turn = func(*http.Request, func()) bool { return false } },
		"owner": func(o *Options) {
			o.Owner = func(performatives.Agent) (func(time.Duration), bool) { return nil, false }
		},
	} {
		if a := ask(serve(t, spend)); a.Code != http.StatusTooManyRequests || a.Header().Get("Retry-After") == "" {
			t.Error(what, a.Code, a.Header())
		}
	}
}

// What was asked before costs its owner nothing, as long as the card, the queue and the task are the same.
func TestCached(t *testing.T) {
	t.Parallel()
	depth, assessed := 1, 0
	profiles := []*discovery.Profile{
		discovery.NewProfile([]discovery.Skill{{ID: "pdf", Name: "PDF", Tags: []string{"pdf"}}}, nil), discovery.NewProfile([]discovery.Skill{{ID: "x", Name: "X"}}, nil),
	}
	card := 0
	g := serve(t, func(o *Options) {
		o.Card = func(performatives.Agent) (Card, bool) { return Card{Profile: profiles[card], Queue: &depth}, true }
		o.Owner = func(performatives.Agent) (func(time.Duration), bool) {
			return func(time.Duration) { assessed++ }, true
		}
	})
	ask := func(task string) string {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, Base+extractor.Token()+"/agent/negotiation", strings.NewReader(task)))
		return w.Body.String()
	}
	seen := map[string]bool{}
	for n, change := range []func(){func() {}, func() { depth = 2 }, func() { card = 1 }} {
		change()
		for _, task := range []string{`{"task_summary":"pdf"}`, `{"task_summary":"more pdf"}`} {
			first := ask(task)
			if again := ask(task); again != first || seen[first] {
				t.Errorf("%s is answered %s, then %s", task, first, again)
			}
			seen[first] = n < 2 // the other card matches neither task
		}
	}
	if assessed != 6 {
		t.Errorf("there were %d assessments", assessed)
	}
	for n := range 100_000 {
		g.cache.put(key{queue: n}, answer{status: http.StatusOK, body: make([]byte, 256)})
	}
	if kept := len(g.cache.younger) + len(g.cache.older); kept > maxCached/512 {
		t.Errorf("%d answers are kept", kept)
	}
}
