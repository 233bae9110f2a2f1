package mcpgateway

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/custody"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Paths of the gateway.
const (
	Path         = "/mcp"
	MetadataPath = "/.well-known/oauth-protected-resource"
)

// maxBody is the largest request; an act has at most 256 KiB.
const maxBody = 300 << 10

// HTTPOptions say what is served over streamable HTTP, and to whom.
type HTTPOptions struct {
	Broker Broker
	Hosted Hosted
	Admit  func(ctx context.Context, bearer string) (custody.Pass, error) // custody.ErrToken lets nobody in
	// Resource is the URL that clients know the gateway by, which an issuer's tokens are for; ""
	// is made of the request's Host.
	Resource string
	Issuer   string   // of tokens besides the broker's own; "" is none
	Origins  []string // of other sites whose pages may call
	Log      *zap.Logger
}

// ServeHTTP is a handler of Path and MetadataPath. Every request stands for itself, in every
// revision of MCP, so it needs no session and any broker may serve the next one.
func ServeHTTP(o HTTPOptions) http.Handler {
	return Serve(o, New(Options{Caller: Admitted, Log: o.Log}), false)
}

// Serve is ServeHTTP for a server of New to which more was added. A stateful one keeps
// sessions, and may ask its clients.
func Serve(o HTTPOptions, server *mcp.Server, stateful bool) http.Handler {
	h := &handler{o: o}
	h.mcp = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: !stateful, JSONResponse: !stateful, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // the bearer token protects, and under --dev the server in front of this
	})
	mux := http.NewServeMux()
	mux.HandleFunc(Path, h.serve)
	mux.HandleFunc(MetadataPath, h.metadata)
	mux.HandleFunc(MetadataPath+Path, h.metadata)
	return mux
}

type handler struct {
	o   HTTPOptions
	mcp http.Handler
}

// passKey is where the token's information has the request.
const passKey = "request"

// admitted is a request that a token lets in.
type admitted struct {
	caller bearer
	ctx    context.Context //nolint:containedctx // the request's own, which the SDK does not hand on in older revisions
}

// serve serves the requests of clients with a token.
func (h *handler) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if h.crossOrigin(w, r) {
		return
	}
	resource := h.resource(r)
	metadata, err := url.Parse(resource)
	if err != nil {
		http.Error(w, "the Host cannot be read", http.StatusBadRequest)
		return
	}
	metadata.Path = MetadataPath + metadata.Path
	var busy bool
	verify := func(ctx context.Context, token string, r *http.Request) (*auth.TokenInfo, error) {
		pass, err := h.o.Admit(ctx, token)
		if err != nil {
			busy = !errors.Is(err, custody.ErrToken)
			return nil, auth.ErrInvalidToken
		}
		a := admitted{bearer{h.o.Broker, h.o.Hosted, pass}, r.Context()}
		return &auth.TokenInfo{UserID: string(pass.Agent) + "#" + pass.Worker, Expiration: pass.Expires, Extra: map[string]any{passKey: a}}, nil
	}
	verified := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: metadata.String(), AllowMissingExpiration: true})
	answer := &answering{ResponseWriter: w, busy: &busy}
	verified(h.mcp).ServeHTTP(answer, r)
}

// answering turns the refusal of a token that could not be looked at into 503.
type answering struct {
	http.ResponseWriter
	busy *bool
}

func (a *answering) WriteHeader(status int) {
	if *a.busy {
		a.Header().Del("WWW-Authenticate")
		a.Header().Set("Retry-After", "1")
		status = http.StatusServiceUnavailable
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends what was written.
func (a *answering) Flush() {
	http.NewResponseController(a.ResponseWriter).Flush() //nolint:errcheck // the client went away
}

// resource is the URL that the client calls.
func (h *handler) resource(r *http.Request) string {
	if h.o.Resource != "" {
		return h.o.Resource
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + Path
}

// crossOrigin refuses pages of other sites, but for those of listed origins.
func (h *handler) crossOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	w.Header().Add("Vary", "Origin")
	if at, err := url.Parse(origin); err == nil && at.Host == r.Host {
		return false
	}
	if !slices.Contains(h.o.Origins, origin) {
		http.Error(w, "pages of this origin may not call (--http-origins lists those that may)", http.StatusForbidden)
		return true
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Mcp-Session-Id, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", "POST, GET, DELETE")
	header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Mcp-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID")
	header.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// metadata says who issues tokens for the gateway (RFC 9728).
func (h *handler) metadata(w http.ResponseWriter, r *http.Request) {
	m := &oauthex.ProtectedResourceMetadata{Resource: h.resource(r), ResourceName: "parley", BearerMethodsSupported: []string{"header"}}
	if h.o.Issuer != "" {
		m.AuthorizationServers = []string{h.o.Issuer}
	}
	auth.ProtectedResourceMetadataHandler(m).ServeHTTP(w, r)
}

// errGone ends the calls of a client that is gone.
var errGone = errors.New("the client is gone")

// Admitted is a Caller of Options for Serve: it finds the caller of a request that a token let in.
// The context ends when the client is gone, and when the token is removed or expires.
func Admitted(ctx context.Context, extra *mcp.RequestExtra) (context.Context, context.CancelFunc, Caller, error) {
	if extra == nil || extra.TokenInfo == nil {
		return ctx, func() {}, nil, session.Refuse(session.Unauthorized, "a token is needed")
	}
	a, _ := extra.TokenInfo.Extra[passKey].(admitted)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.ctx, func() { cancel(errGone) })
	done := func() { stop(); cancel(nil) }
	if expires := a.caller.pass.Expires; !expires.IsZero() {
		var expire context.CancelFunc
		ctx, expire = context.WithDeadlineCause(ctx, expires, custody.ErrToken)
		done = func() { stop(); expire(); cancel(nil) }
	}
	if removed := a.caller.pass.Removed; removed != nil {
		go func() {
			select {
			case <-removed:
				cancel(custody.ErrToken)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, done, a.caller, nil
}

// unfit words as the broker would what need not be sent to be refused.
func unfit(err error) error {
	if errors.Is(err, performatives.ErrTooLarge) {
		return session.Refuse(session.TooLarge, "%s", err)
	}
	if _, is := errors.AsType[*performatives.Malformed](err); is {
		return session.Refuse(session.MalformedEnvelope, "%s", err)
	}
	return err
}
