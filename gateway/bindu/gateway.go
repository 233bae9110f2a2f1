// Package bindugateway answers for agents as Bindu's agents do: how well each fits a task.
// Orchestrators for Bindu work unchanged (docs/DISCOVERY.md).
//
//	mux.Handle(bindugateway.Base, bindugateway.New(bindugateway.Options{Assess: assess, Allow: allow}))
//
//	POST /bindu/{token}/agent/negotiation
//
// {token} is the token of the agent's URI. Anybody may ask, unless Admit is set; each
// address may ask so often (Allow). Statuses and texts are Bindu's.
package bindugateway

import (
	"context"
	"io"
	"net/http"
	"strings"
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
	// Assess assesses an agent by its card; false is no such agent.
	Assess func(context.Context, performatives.Agent, *discovery.Prepared) (discovery.Assessment, bool)
	// Allow counts a request of an address; false is too many.
	Allow func(*http.Request) bool
	// Admit refuses requests without a token of parley's; nil admits all.
	Admit func(*http.Request) error
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
type Gateway struct{ o Options }

// New makes a gateway.
func New(o Options) *Gateway { return &Gateway{o} }

// ServeHTTP serves a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, negotiates := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, Base), "/agent/negotiation")
	agent, err := performatives.ParseToken(token)
	switch {
	case !negotiates:
		refuse(w, http.StatusNotFound, "Not Found")
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	case !g.o.Allow(r):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "Too many requests")
	case g.o.Admit != nil && g.o.Admit(r) != nil:
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, "Unauthorized")
	case err != nil:
		refuse(w, http.StatusNotFound, "Agent not found")
	default:
		g.negotiate(w, r, agent)
	}
}

// negotiate answers with the agent's assessment of the task. A refusal of the task is an
// answer too.
func (g *Gateway) negotiate(w http.ResponseWriter, r *http.Request, agent performatives.Agent) {
	task, status, fault := read(r)
	if fault != "" {
		refuse(w, status, fault)
		return
	}
	a, known := g.o.Assess(r.Context(), agent, task.Prepare())
	if !known {
		refuse(w, http.StatusNotFound, "Agent not found")
		return
	}
	if strings.Contains(r.Header.Get(extensions), x402) {
		w.Header().Set(extensions, x402)
	}
	write(w, http.StatusOK, a)
}

// read reads a task from a body of any content type. A member that is null is absent.
func read(r *http.Request) (task discovery.Task, status int, fault string) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if len(data) > maxBody {
		return task, http.StatusRequestEntityTooLarge, "The body is too large"
	}
	members := map[string]jsontext.Value{}
	if err != nil || json.Unmarshal(data, &members, jsontext.AllowDuplicateNames(true)) != nil {
		return task, http.StatusBadRequest, "Invalid JSON payload"
	}
	var summary string
	if json.Unmarshal(members["task_summary"], &summary) != nil || summary == "" {
		return task, http.StatusBadRequest, "'task_summary' is required"
	}
	if utf8.RuneCountInString(summary) > discovery.MaxText {
		return task, http.StatusBadRequest, "task_summary exceeds maximum length of 10000 characters"
	}
	if json.Unmarshal(data, &task, jsontext.AllowDuplicateNames(true)) != nil {
		return task, http.StatusBadRequest, "Invalid task: a member has the wrong type"
	}
	if max(len(task.InputTypes), len(task.OutputTypes), len(task.RequiredTools), len(task.ForbiddenTools)) > maxWanted || len(task.Details) > maxDetails {
		return task, http.StatusBadRequest, "Invalid task: it names too many types or tools, or its details are too long"
	}
	if name := task.Weights.Negative(); name != "" {
		return task, http.StatusBadRequest, "Invalid weights: Weight '" + name + "' must be non-negative"
	}
	return task, http.StatusOK, ""
}

func refuse(w http.ResponseWriter, status int, why string) {
	write(w, status, struct {
		Error string `json:"error"`
	}{why})
}

func write(w http.ResponseWriter, status int, reply any) {
	data, err := json.Marshal(reply)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"Internal error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
}
