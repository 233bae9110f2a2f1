// Package httpgateway is the HTTP face of a broker: it decodes requests, calls the verbs
// of package api and submits envelopes, and encodes the answers (docs/HTTP.md).
//
//	gateway := httpgateway.New(httpgateway.Options{Broker: b, Custody: b.Custody(), Hosted: h})
//	mux.Handle("/v1/asp/", gateway)
//	defer gateway.Close()
//
// A request comes with a token, which says for whom it acts. For an agent that is hosted
// the gateway makes the envelope and signs it; all others send envelopes that they have
// signed. Every request goes to the brokers over the principal's own subjects, so limits
// and checks are those of NATS, and whichever broker owns the session answers. No rule of
// the protocol lives here: what a route takes and answers follows from its verb.
package httpgateway

import (
	"context"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/custody"
	"github.com/parley-asp/parley/hosted"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Broker answers verbs and judges envelopes for a principal that is authenticated.
// Refusals are *session.Refusal.
type Broker interface {
	CallAs(ctx context.Context, as performatives.Agent, verb string, request []byte) ([]byte, error)
	SubmitAs(ctx context.Context, as performatives.Agent, s performatives.SessionID, envelope []byte) (api.Acceptance, error)
}

// Custody knows tokens.
type Custody interface {
	Admit(ctx context.Context, bearer string) (custody.Pass, error)
	Prove(ctx context.Context, proof api.ProveToken) (api.Token, error)
}

// Hosted says acts for hosted agents.
type Hosted interface {
	Say(ctx context.Context, as performatives.Agent, id performatives.SessionID, key string, said hosted.Said) (api.Acceptance, error)
}

// Feeds tell of what is stored, after it is.
type Feeds interface {
	Seen(a performatives.Agent) // it holds a stream open
	WatchSession(ctx context.Context, id performatives.SessionID) (changed <-chan struct{}, stop func(), err error)
	WatchInbox(ctx context.Context, a performatives.Agent) (changed <-chan struct{}, stop func(), err error)
}

// Options say what is served.
type Options struct {
	Broker  Broker
	Custody Custody
	Hosted  Hosted
	Feeds   Feeds
	Dev     bool     // loopback names only
	Origins []string // of other sites whose pages may call
	Log     *zap.Logger
}

// A Gateway serves requests below Base, and the OpenAPI description at /openapi.json.
type Gateway struct {
	o      Options
	mux    *http.ServeMux
	ending chan struct{} // closed to end streams
	end    sync.Once
	open   sync.WaitGroup // WebSockets, of which http.Server knows nothing
}

// Base is the path that all routes begin with.
const Base = "/v1/asp"

// New makes a gateway.
func New(o Options) *Gateway {
	g := &Gateway{o: o, mux: http.NewServeMux(), ending: make(chan struct{})}
	for _, r := range routes() {
		g.mux.HandleFunc(r.method+" "+Base+r.path, func(w http.ResponseWriter, req *http.Request) {
			g.serve(w, req, r)
		})
	}
	for _, path := range []string{"GET /openapi.json", "GET " + Base + "/openapi.json"} {
		g.mux.HandleFunc(path, g.describe)
	}
	return g
}

// Close ends all streams; their readers resume at another broker.
func (g *Gateway) Close() { g.end.Do(func() { close(g.ending) }) }

// Wait waits for WebSockets to close, after Close.
func (g *Gateway) Wait(ctx context.Context) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		g.open.Wait()
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// ServeHTTP serves a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if g.o.Dev && !loopback(r.Host) { // prevents DNS rebinding, which --dev has no login against
		fail(w, http.StatusForbidden, session.Refuse(session.Unauthorized, "--dev serves localhost only"))
		return
	}
	if g.crossOrigin(w, r) {
		return
	}
	if _, pattern := g.mux.Handler(r); pattern == "" || !clean(r) {
		g.noRoute(w, r)
		return
	}
	g.mux.ServeHTTP(w, r)
}

// noRoute refuses a path or a method that there is not.
func (g *Gateway) noRoute(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := g.mux.Handler(other); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 || !clean(r) {
		fail(w, http.StatusNotFound, session.Refuse(session.MalformedEnvelope,
			"there is no such path; %s/openapi.json lists all, and an agent's URI in one is percent-encoded", Base))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	fail(w, http.StatusMethodNotAllowed, session.Refuse(session.MalformedEnvelope, "the path takes %s", strings.Join(allowed, ", ")))
}

// clean tells whether the path is as a client should send it. http.ServeMux answers
// another one with a redirect, which an agent's URI that is not percent-encoded does not survive.
func clean(r *http.Request) bool {
	escaped := r.URL.EscapedPath()
	return strings.TrimSuffix(escaped, "/") == path.Clean(escaped)
}

// crossOrigin lets pages of listed origins call, and answers a browser's preflight.
func (g *Gateway) crossOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
	if len(g.o.Origins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !slices.Contains(g.o.Origins, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Location, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// Local serves requests for loopback names only: without a login there is nothing else that
// keeps pages of other sites out (DNS rebinding).
func Local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback(r.Host) {
			fail(w, http.StatusForbidden, session.Refuse(session.Unauthorized, "--dev serves localhost only"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func loopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
