// Package a2agateway lets clients of A2A meet hosted agents: each with "a2a": true in its
// card is an A2A v1.0 server of its own, with JSON-RPC and REST (docs/GATEWAYS.md).
//
//	gateway := a2agateway.New(a2agateway.Options{Service: service, …})
//	mux.Handle(a2agateway.Base, gateway)
//	defer gateway.Close()
//
//	/a2a/{token}/.well-known/agent-card.json   for everybody, signed with the agent's key
//	/a2a/{token}/                              JSON-RPC; REST below it
//
// {token} is that of the agent's URI. The caller's bearer token says which principal it is.
// A context is a session of the caller with the agent, with one task, which has the same id.
// Messages become the caller's acts, and the transcript is the task's history. The task's state
// is read off the session's view.
package a2agateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	a2alog "github.com/a2aproject/a2a-go/v2/log"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/internal/outbound"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Base is the path that all routes begin with.
const Base = "/a2a/"

// Extension is the URI of the extension by which signed envelopes travel in data parts.
const Extension = "https://parley-asp.github.io/asp/v0.1"

// Options say what is served.
type Options struct {
	Service *gateway.Service
	Records *store.Bucket // what is to be done once a session goes on

	// Served finds the card of an agent that A2A reaches.
	Served func(performatives.Agent) (api.Card, bool)
	// Owns reports whether this broker, and no other, does what there is to do for a session.
	Owns func(performatives.SessionID) bool
	// CheckURL refuses a URL that Push would not reach.
	CheckURL func(string) error
	// Allow counts a request that needs no token; false is too many.
	Allow func(*http.Request) bool

	URL     string       // at which others reach HTTP; "" is that of each request
	Push    *http.Client // that calls webhooks, which clients name
	Version string
}

// A Gateway serves requests below Base.
type Gateway struct {
	o                 Options
	ctx               context.Context //nolint:containedctx // the gateway's life, with which streams end
	work              *background.Group
	followers         followers
	rpc, rest, oldRPC http.Handler
}

// keepAlive is between comments on a stream that is idle.
const keepAlive = 15 * time.Second

// New makes a gateway.
func New(o Options) *Gateway {
	work := background.New()
	g := &Gateway{o: o, work: work, ctx: work.Context()}
	g.followers = followers{Gateway: g, pushes: outbound.New(pushBounds), running: map[string]*follower{}}
	transport := []a2asrv.TransportOption{a2asrv.WithTransportKeepAlive(keepAlive), a2asrv.WithTransportPanicHandler(func(why any) error {
		o.Service.Log.Error("a2a", zap.String("panic", fmt.Sprint(why)))
		return a2a.ErrInternalError
	})}
	g.rpc, g.rest = a2asrv.NewJSONRPCHandler(tasks{g}, transport...), a2asrv.NewRESTHandler(tasks{g}, transport...)
	g.oldRPC = a2av0.NewJSONRPCHandler(tasks{g}, transport...)
	return g
}

// Open resumes what was to be done when the process ended. It is for after the listener is up.
func (g *Gateway) Open(ctx context.Context) error { return g.followers.open(ctx) }

// Close ends streams and what runs in the background.
func (g *Gateway) Close() { g.work.Close() }

// A call is one authenticated request to an agent.
type call struct {
	gateway.Caller

	to    performatives.Agent // the agent that is asked
	asp   bool                // the caller asked for Extension
	wrong error               // with the data of its message, if any
}

type callKey struct{}

// callOf is the call that a request of the library's is of.
func callOf(ctx context.Context) call {
	c, _ := ctx.Value(callKey{}).(call)
	return c
}

// ServeHTTP serves a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	token, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Base), "/")
	agent, err := performatives.ParseToken(token)
	card, served := g.o.Served(agent)
	public := strings.HasPrefix(path, ".well-known/")
	switch {
	case public && !g.o.Allow(r):
		h.Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "too many requests from your address")
	case err != nil || !served:
		fail(w, http.StatusNotFound, "NOT_FOUND", "there is no such agent")
	case public:
		g.wellKnown(w, r, path, card)
	default:
		g.serve(w, r, agent, path)
	}
}

// serve authenticates a request, reads it and passes it to the library.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, agent performatives.Agent, path string) {
	caller, err := g.o.Service.AdmitHTTP(r)
	switch refusal := new(session.Refusal); {
	case err == nil:
	case errors.Is(err, custody.ErrToken):
		w.Header().Set("WWW-Authenticate", `Bearer realm="asp"`)
		fail(w, http.StatusUnauthorized, "UNAUTHENTICATED", "send Authorization: Bearer <token>")
		return
	case errors.As(err, &refusal) && refusal.Code == session.RateLimited:
		limited(w, refusal)
		return
	default:
		fail(w, http.StatusServiceUnavailable, "UNAVAILABLE", "try again")
		return
	}
	body, err := caller.ReadBody(w, r)
	switch refusal := new(session.Refusal); {
	case errors.As(err, &refusal) && refusal.Code == session.TooLarge:
		fail(w, http.StatusRequestEntityTooLarge, "INVALID_ARGUMENT", refusal.Message)
		return
	case errors.As(err, &refusal):
		limited(w, refusal)
		return
	case err != nil:
		fail(w, http.StatusBadRequest, "INVALID_ARGUMENT", "the body ends early")
		return
	}
	c := call{Caller: caller, to: agent, wrong: checkData(body, path == "")}
	for _, name := range []string{"A2A-Extensions", "X-A2A-Extensions"} {
		for _, value := range r.Header.Values(name) {
			if strings.Contains(value, Extension) {
				c.asp = true
				w.Header().Set(name, Extension)
			}
		}
	}
	ctx, cancel := g.until(r.Context(), caller)
	defer cancel()
	ctx = a2alog.AttachLogger(context.WithValue(ctx, callKey{}, c), slog.New(slog.DiscardHandler))
	inner := r.Clone(ctx)
	inner.URL.Path, inner.URL.RawPath = "/"+path, ""
	setBody(inner, body)
	out := &response{ResponseWriter: w, out: http.NewResponseController(w), rest: path != ""}
	g.binding(inner, body).ServeHTTP(out, inner)
	out.release()
}

// limited refuses a caller that exceeds its limits.
func limited(w http.ResponseWriter, refusal *session.Refusal) {
	w.Header().Set("Retry-After", gateway.RetryAfter(refusal))
	fail(w, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", refusal.Message)
}

func setBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// binding is by which protocol a request is to be read: its path and A2A-Version say so, and
// for JSON-RPC the style of the method's name.
func (g *Gateway) binding(r *http.Request, body []byte) http.Handler {
	version, rpc := r.Header.Get(a2a.SvcParamVersion), r.URL.Path == "/"
	old := strings.HasPrefix(version, "0.3")
	switch {
	case version != "" && (!old || !rpc) && version != "1" && !strings.HasPrefix(version, "1.0"):
		return wrongVersion.answer(rpc, body)
	case len(body) > 0 && !isJSON(r.Header.Get("Content-Type")):
		return wrongType.answer(rpc, body)
	case rpc && (old || oldMethod(body)):
		return g.oldRPC
	case rpc:
		setBody(r, camelParams(body))
		return g.rpc
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ":subscribe"): // as a2a.proto has it; the library knows the text's POST
		r.Method = http.MethodPost
	}
	return g.rest
}

// until is a request's context until its token ends or the gateway closes.
func (g *Gateway) until(ctx context.Context, caller gateway.Caller) (context.Context, context.CancelFunc) {
	ctx, cancel := caller.Until(ctx)
	stop := context.AfterFunc(g.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
