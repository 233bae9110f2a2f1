// Package httpgateway is the HTTP face of a broker: it decodes requests, calls the verbs
// of package api and submits envelopes, and encodes the answers (docs/AGENTS.md).
//
//	gateway := httpgateway.New(httpgateway.Options{Service: service})
//	mux.Handle("/v1/asp/", gateway)
//	defer gateway.Close()
//
// A request comes with a token, which says for whom it acts. For an agent that is hosted
// the broker makes the envelope and signs it; all others send envelopes that they have
// signed. What a route takes and answers follows from its verb.
package httpgateway

import (
	"context"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Options say what is served.
type Options struct {
	Service *gateway.Service
	Key     performatives.Key // the broker's
	Origins []string          // of other sites whose pages may call
	// Allow charges a request of nobody to its address, or refuses it; nil allows all.
	Allow func(*http.Request) bool
}

// A Gateway serves requests below api.HTTPBase, and the OpenAPI description at /openapi.json.
type Gateway struct {
	service *gateway.Service
	key     performatives.Key
	origins []string
	allow   func(*http.Request) bool
	mux     *http.ServeMux
	ending  chan struct{} // closed to end streams
	end     sync.Once
	open    sync.WaitGroup // WebSockets, of which http.Server knows nothing
}

// New makes a gateway.
func New(o Options) *Gateway {
	g := &Gateway{service: o.Service, key: o.Key, origins: o.Origins, allow: o.Allow, mux: http.NewServeMux(), ending: make(chan struct{})}
	for _, r := range routes() {
		g.mux.HandleFunc(r.at.Method()+" "+r.at.Path(), func(w http.ResponseWriter, req *http.Request) {
			g.serve(w, req, r)
		})
	}
	for _, path := range []string{"GET /openapi.json", "GET " + api.HTTPBase + "/openapi.json"} {
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
	if g.service.Dev && !loopback(r.Host) { // prevents DNS rebinding, which --dev has no login against
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
			"there is no such path; %s/openapi.json lists all, and an agent's URI in one is percent-encoded", api.HTTPBase))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	fail(w, http.StatusMethodNotAllowed, session.Refuse(session.MalformedEnvelope, "the path takes %s", strings.Join(allowed, ", ")))
}

// clean reports whether the path is as a client should send it. http.ServeMux answers
// another one with a redirect, which an agent's URI that is not percent-encoded does not survive.
func clean(r *http.Request) bool {
	escaped := r.URL.EscapedPath()
	return strings.TrimSuffix(escaped, "/") == path.Clean(escaped)
}

// crossOrigin lets pages of listed origins call, and answers a browser's preflight.
func (g *Gateway) crossOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
	if len(g.origins) == 0 {
		return false
	}
	w.Header().Add("Vary", "Origin")
	if !slices.Contains(g.origins, r.Header.Get("Origin")) {
		return false
	}
	return gateway.AllowOrigin(w, r, "ETag, Location, Retry-After, WWW-Authenticate", "GET, POST, PUT, DELETE",
		"Asp-Agent, Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, Traceparent")
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
