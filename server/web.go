package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	a2agateway "github.com/parley-asp/parley/gateway/a2a"
	ardgateway "github.com/parley-asp/parley/gateway/ard"
	bindugateway "github.com/parley-asp/parley/gateway/bindu"
	httpgateway "github.com/parley-asp/parley/gateway/http"
	indexgateway "github.com/parley-asp/parley/gateway/index"
	mcpgateway "github.com/parley-asp/parley/gateway/mcp"
	oapgateway "github.com/parley-asp/parley/gateway/oap"
	"github.com/parley-asp/parley/inbox"
	"github.com/parley-asp/parley/performatives"
)

// web is the HTTP listener: health and version for an orchestrator, and the
// escalation inbox for people.
type web struct {
	addr   string
	server *http.Server
	inbox  *inbox.Inbox
	http   *httpgateway.Gateway
	a2a    *a2agateway.Gateway
	talks  *a2agateway.Remotes

	endWaits func() // for turns
}

// Timeouts of HTTP. gateway.Deadlines has those of single writes.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10 // bytes
)

func openWeb(o Options, tlsConfig *tls.Config, log *zap.Logger, s *Server) (*web, error) {
	listener, err := net.Listen("tcp", o.HTTP)
	if err != nil {
		return nil, err
	}
	visitors := s.visitors(o.HTTPConnections, o.HTTPProxies)
	accounts := s.Broker.Command.Accounts()
	public, searches := addressLimiter{accounts, visitors.from, 1}, addressLimiter{accounts, visitors.from, ofOneSearch}
	mux := http.NewServeMux()
	local := func(h http.Handler) http.Handler { return h }
	if s.Broker.Options.Dev {
		local = httpgateway.Local
	}
	mux.Handle("GET /healthz", public.limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.health(w, r, o.Data) })))
	mux.Handle("GET /version", public.limit(http.HandlerFunc(s.version)))
	signIn, err := o.signIn()
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	pages := inbox.New(inbox.Options{
		Service: s.Broker.Service, Redeem: s.Broker.Parts.Registry.Redeem, NameOf: s.Broker.Parts.Registry.NameOf, Operates: s.operates, Key: s.Broker.Command.Key(), Keys: s.Broker.Options.Keys, HTTPS: strings.HasPrefix(o.HTTPURL, "https://"), Dev: s.Broker.Options.Dev, OpenRulings: o.OpenRulings, OpenID: signIn, Humans: s.humans, Meet: s.meet, From: visitors.from, Log: log, Now: s.Broker.Options.Now,
	})
	mux.Handle("/inbox/", http.StripPrefix("/inbox", pages))
	requests := httpgateway.New(httpgateway.Options{Service: s.Broker.Service, Key: s.Broker.Command.Key(), Origins: o.HTTPOrigins, Allow: public.allow})
	mux.Handle("/openapi.json", requests)
	mux.Handle(indexgateway.Base, local(indexgateway.New(s.Broker.Service)))
	oap := local(oapgateway.New(oapgateway.Options{Service: s.Broker.Service, AgentOf: s.Broker.Parts.Registry.AgentOf, Party: s.Broker.Parts.Registry.HostedBesideOwn, Key: s.Broker.Command.Key()}))
	mux.Handle(oapgateway.Base, oap)
	mux.Handle("GET "+oapgateway.ManifestPath, public.limit(oap))
	forAssistants := *s.Broker.Service
	forAssistants.Tokens = s.admits(o.OIDC)
	assistants := local(mcpgateway.ServeHTTP(mcpgateway.HTTPOptions{
		Service: &forAssistants, Resource: o.OIDC.Audience, URL: o.HTTPURL, Issuer: o.OIDC.Issuer, Origins: o.HTTPOrigins,
	}))
	mux.Handle(mcpgateway.TokenPath, public.limit(assistants))
	for _, path := range []string{mcpgateway.Path, mcpgateway.MetadataPath, mcpgateway.MetadataPath + mcpgateway.Path, mcpgateway.IssuerPath} {
		mux.Handle(path, assistants)
	}
	mux.Handle(bindugateway.Base, bindugateway.New(s.bindu(o, public, searches)))
	met := s.a2a(o, public)
	if err := met.Open(context.Background()); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	mux.Handle(a2agateway.Base, local(met))
	mux.HandleFunc("GET "+a2agateway.DocumentPath, a2agateway.Document)
	catalog := ardgateway.New(ardgateway.Options{Agents: s.Broker.Proposals.Agents, Allow: searches.allow, URL: o.HTTPURL, A2A: s.a2aCard})
	for _, path := range []string{ardgateway.CatalogPath, ardgateway.AgentsPath, ardgateway.SearchPath, ardgateway.ExplorePath} {
		mux.Handle(path, catalog)
	}
	mux.Handle("GET "+ardgateway.ListPath, pagesOr("inbox/agents", catalog))
	mux.Handle("/log/", public.limit(readers{accounts, visitors.from, accounts.Scheduler(logReaders, 0)}.limit(s.Broker.Parts.Ledger)))
	mux.Handle("/log/checkpoint", public.limit(s.Broker.Parts.Ledger))
	mux.Handle("GET /did/{token}/did.json", public.limit(http.HandlerFunc(s.did)))
	for _, path := range []string{"GET /{$}", "GET /inbox"} {
		mux.Handle(path, redirect("inbox/"))
	}
	server, err := newHTTPServer(gateway.Deadlines(refuseOver(gateway.MeteredHTTP(s.export.Traces.HTTP(below(api.HTTPBase, requests, mux)), public.account))), log)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	addr := listener.Addr().String()
	listener = visitors.listen(listener)
	if tlsConfig != nil {
		server.TLSConfig = tlsConfig.Clone() // ServeTLS changes it
		go server.ServeTLS(listener, "", "") //nolint:errcheck // returns when closed
	} else {
		go server.Serve(listener) //nolint:errcheck // returns when closed
	}
	return &web{addr, server, pages, requests, met, s.remotes(o, met), s.Broker.endWaits}, nil
}

// health is for an orchestrator, and warns its operator.
func (s *Server) health(w http.ResponseWriter, r *http.Request, data string) {
	if err := s.healthy(r.Context()); err != nil {
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
		return
	}
	text := "ok\n"
	for _, file := range exposed(data) {
		text += "warning: " + file + " can be read by others\n"
	}
	if why := s.certificate.warning(time.Now()); why != "" {
		text += "warning: " + why + "\n"
	}
	if why := s.Broker.Parts.Store.Servers().Missing(); why != "" {
		text += "warning: " + why + "\n"
	}
	if why := s.Broker.Parts.Ledger.Trouble(); why != nil {
		text += "warning: " + why.Error() + "\n"
	}
	if _, sessions := s.Broker.Parts.Members.HandedOver(); sessions > 0 {
		text += fmt.Sprintf("warning: side effects cannot be applied here, and peers are asked to: sessions: %d\n", sessions)
	}
	w.Write([]byte(text)) //nolint:errcheck // the client went away
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	data, err := json.Marshal(struct {
		Broker  performatives.Key        `json:"broker"`
		Keys    performatives.KeyHistory `json:"keys,omitzero"` // once the broker's key has been rotated
		Version string                   `json:"version"`
	}{s.Broker.Command.Key(), s.Broker.Options.Keys, api.Version}, json.Deterministic(true))
	if err == nil {
		w.Write(append(data, '\n')) //nolint:errcheck // the client went away
	}
}

func newHTTPServer(handler http.Handler, log *zap.Logger) (server *http.Server, err error) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true) // behind a reverse proxy that ends TLS
	server = &http.Server{
		Handler: handler, Protocols: protocols, HTTP2: &http.HTTP2Config{WriteByteTimeout: gateway.WriteWithin}, ConnContext: mark, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: gateway.AnswerIn, IdleTimeout: idleTimeout,
	}
	// Its errors are about clients, such as one that does not speak TLS.
	server.ErrorLog, err = zap.NewStdLogAt(log, zap.DebugLevel)
	return server, err
}

// redirect leads to a relative URL: a reverse proxy may add a prefix.
func redirect(to string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusSeeOther)
	})
}

// pagesOr leads browsers to a page, and serves others: who asks for HTML or sends a cookie
// is a browser.
func pagesOr(page string, others http.Handler) http.Handler {
	browsers := redirect(page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept, Cookie")
		if strings.Contains(r.Header.Get("Accept"), "text/html") || r.Header.Get("Cookie") != "" {
			browsers.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// below serves the paths below base by a handler that gets them as they were sent: a mux
// redirects those that are not clean.
func below(base string, handler, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == base || strings.HasPrefix(r.URL.Path, base+"/") {
			handler.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

func (w *web) close(ctx context.Context) {
	w.endWaits()
	w.inbox.Close() // live connections are never idle
	w.http.Close()
	w.talks.Close()
	w.a2a.Close()
	w.server.Shutdown(ctx) //nolint:errcheck // the process exits
	w.http.Wait(ctx)
}

// crash closes every connection at once.
func (w *web) crash() {
	w.endWaits()
	w.inbox.Close()
	w.http.Close()
	w.talks.Close()
	w.a2a.Close()
	w.server.Close() //nolint:errcheck // as a crash would
}

// humans lists the humans that --dev offers at sign-in.
func (s *Server) humans(ctx context.Context) ([]api.Card, error) {
	agents, err := ask(ctx, s, api.AgentList, api.ListAgents{Kind: performatives.KindHuman, Limit: api.MaxPage})
	return agents.Agents, err
}

// meet registers a human who signs in for the first time under --dev.
func (s *Server) meet(ctx context.Context, a performatives.Agent) error {
	humans, err := s.humans(ctx)
	if err != nil || slices.ContainsFunc(humans, func(c api.Card) bool { return c.Agent == a }) {
		return err
	}
	card := api.Card{Agent: a, Kind: performatives.KindHuman}
	card.Registry.MayDecide = true
	_, err = s.Broker.Parts.Registry.Add(ctx, card)
	return err
}
