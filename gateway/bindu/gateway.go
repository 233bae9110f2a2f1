// Package bindugateway answers for agents as Bindu's agents do: how well each fits a task.
// Orchestrators for Bindu work unchanged (docs/DISCOVERY.md).
//
//	mux.Handle(bindugateway.Base, bindugateway.New(bindugateway.Options{Card: card, Enter: enter, Turn: turn, Owner: owner}))
//
//	POST /bindu/{token}/agent/negotiation
//	GET  /bindu/{token}/.well-known/agent.json, /bindu/{token}/agent/info
//
// {token} is the token of the agent's URI. Anybody may ask, unless Admit is set. Statuses and texts
// are Bindu's. What an assessment costs is charged to the address that asks, and what the card makes it
// cost to the card's owner. Answers are cached by card, queue and task.
package bindugateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

// Base is the path that all routes begin with.
const Base = "/bindu/"

// Options say what is served.
type Options struct {
	// Card finds what an agent is assessed by; false is no such agent.
	Card func(performatives.Agent) (Card, bool)
	// Similar compares a task with the skills of cards; nil compares by keywords alone.
	Similar func(context.Context, discovery.Task, [][]discovery.Skill) ([]discovery.Similarity, error)
	// Enter counts a request of an address until leave; false is too many.
	Enter func(*http.Request) (leave func(), ok bool)
	// Turn works when it is the turn of the address that asks, and charges it; false is too much.
	Turn func(r *http.Request, work func()) bool
	// Owner finds the account of a card's owner; false is that it is spent.
	Owner func(performatives.Agent) (charge func(time.Duration), ok bool)
	// URL is at which others reach HTTP, "" for that of each request; Version is the program's.
	URL, Version string
	// Admit refuses requests without a token of parley's; nil admits all.
	Admit func(*http.Request) error
}

// A Card is what an agent is assessed by.
type Card struct {
	Profile *discovery.Profile
	Queue   *int // nil is unknown
	Skills  []discovery.Skill

	Name, Description string
}

// Bounds of requests.
const (
	maxBody    = 300 << 10
	maxDetails = 128 << 10 // bytes
	maxWanted  = 1_000     // types or tools of a kind
)

// x402 is the extension that a client may name, and is then told of.
const (
	extensions = "X-A2A-Extensions"
	x402       = "https://github.com/google-a2a/a2a-x402/v0.1"
)

// A Gateway serves requests below Base.
type Gateway struct {
	o     Options
	cache cache
}

// New makes a gateway.
func New(o Options) *Gateway { return &Gateway{o: o} }

// ServeHTTP serves a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, negotiates := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, Base), negotiation)
	shows := false
	for _, path := range []string{cardPath, infoPath} {
		if of, is := strings.CutSuffix(token, path); is {
			token, shows = of, true
		}
	}
	agent, err := performatives.ParseToken(token)
	leave, ok := g.o.Enter(r)
	if !ok {
		busy().write(w)
		return
	}
	defer leave()
	switch {
	case !negotiates && !shows:
		refusal(http.StatusNotFound, "Not Found").write(w)
	case negotiates && r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	case g.o.Admit != nil && g.o.Admit(r) != nil:
		w.Header().Set("WWW-Authenticate", "Bearer")
		refusal(http.StatusUnauthorized, "Unauthorized").write(w)
	case err != nil:
		refusal(http.StatusNotFound, "Agent not found").write(w)
	case shows:
		g.show(w, r, agent)
	default:
		g.negotiate(w, r, agent)
	}
}

// negotiate answers with the agent's assessment of the task. A refusal of the task is an
// answer too.
func (g *Gateway) negotiate(w http.ResponseWriter, r *http.Request, agent performatives.Agent) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	var task discovery.Task
	var a answer
	if !g.o.Turn(r, func() {
		if a = g.cache.get(g.key(agent, data)); a.status == 0 {
			task, a = read(data, err)
		}
	}) {
		a = busy()
	}
	if a.status == 0 {
		a = g.assess(r, agent, task, data)
	}
	if a.status == http.StatusOK && strings.Contains(r.Header.Get(extensions), x402) {
		w.Header().Set(extensions, x402)
	}
	a.write(w)
}

// assess assesses an agent, in a turn of its own: what it is compared by may have to be fetched.
func (g *Gateway) assess(r *http.Request, agent performatives.Agent, task discovery.Task, data []byte) (a answer) {
	card, known := g.o.Card(agent)
	charge, ok := g.o.Owner(agent)
	switch {
	case !known:
		return refusal(http.StatusNotFound, "Agent not found")
	case !ok:
		return busy()
	}
	var similar discovery.Similarity
	warning := ""
	if g.o.Similar != nil {
		if alike, err := g.o.Similar(r.Context(), task, [][]discovery.Skill{card.Skills}); err != nil {
			warning = "keywords decide alone: the endpoint of embeddings fails"
		} else {
			similar = alike[0]
		}
	}
	if !g.o.Turn(r, func() {
		prepared := task.Prepare()
		begun := time.Now()
		assessment := card.Profile.Assess(prepared, card.Queue, similar)
		charge(time.Since(begun))
		if a = reply(http.StatusOK, assessment); g.o.Similar == nil {
			g.cache.put(keyOf(card, data), a)
		}
	}) {
		return busy()
	}
	a.warning = warning
	return a
}

// read reads a task from a body of any content type. A member that is null is absent.
func read(data []byte, err error) (task discovery.Task, fault answer) {
	if len(data) > maxBody {
		return task, refusal(http.StatusRequestEntityTooLarge, "The body is too large")
	}
	members := map[string]jsontext.Value{}
	if err != nil || json.Unmarshal(data, &members, jsontext.AllowDuplicateNames(true)) != nil {
		return task, refusal(http.StatusBadRequest, "Invalid JSON payload")
	}
	var summary string
	if json.Unmarshal(members["task_summary"], &summary) != nil || summary == "" {
		return task, refusal(http.StatusBadRequest, "'task_summary' is required")
	}
	if utf8.RuneCountInString(summary) > discovery.MaxText {
		return task, refusal(http.StatusBadRequest, "task_summary exceeds maximum length of 10000 characters")
	}
	if json.Unmarshal(data, &task, jsontext.AllowDuplicateNames(true)) != nil {
		return task, refusal(http.StatusBadRequest, "Invalid task: a member has the wrong type")
	}
	if max(len(task.InputTypes), len(task.OutputTypes), len(task.RequiredTools), len(task.ForbiddenTools)) > maxWanted || len(task.Details) > maxDetails {
		return task, refusal(http.StatusBadRequest, "Invalid task: it names too many types or tools, or its details are too long")
	}
	if name := task.Weights.Negative(); name != "" {
		return task, refusal(http.StatusBadRequest, "Invalid weights: Weight '"+name+"' must be non-negative")
	}
	return task, answer{}
}

// An answer is a status and a body. The zero answer is none.
type answer struct {
	status  int
	body    []byte
	warning string
}

func reply(status int, of any) answer {
	data, err := json.Marshal(of, json.Deterministic(true))
	if err != nil {
		return answer{status: http.StatusInternalServerError, body: []byte(`{"error":"Internal error"}`)}
	}
	return answer{status: status, body: data}
}

func refusal(status int, why string) answer {
	return reply(status, struct {
		Error string `json:"error"`
	}{why})
}

func busy() answer { return refusal(http.StatusTooManyRequests, "Too many requests") }

func (a answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if a.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	if a.warning != "" {
		w.Header().Set("Warning", `199 - "`+a.warning+`"`)
	}
	w.WriteHeader(a.status)
	w.Write(a.body) //nolint:errcheck // the client went away
}
