package mcpgateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Paths of the gateway.
const (
	Path         = "/mcp"
	MetadataPath = "/.well-known/oauth-protected-resource"
	IssuerPath   = "/.well-known/oauth-authorization-server"
	TokenPath    = "/oauth/token"

	AllTools = "?tools=all" // of Path: all tools, not the kit alone
)

// HTTPOptions say what is served over streamable HTTP, and to whom.
type HTTPOptions struct {
	Service *gateway.Service
	// Resource is the URL that clients know the gateway by, which an issuer's tokens are for; ""
	// is made of the request's Host.
	Resource string
	URL      string   // at which others reach the installation; "" is that of each request
	Issuer   string   // of tokens besides the broker's own; "" is none
	Origins  []string // of other sites whose pages may call
}

// ServeHTTP is a handler of the paths above. Every request stands for itself, in every
// revision of MCP, so it needs no session and any broker may serve the next one.
func ServeHTTP(o HTTPOptions) http.Handler {
	some, every := New(Options{Caller: Admitted, Log: o.Service.Log}), New(Options{Caller: Admitted, Log: o.Service.Log, AllTools: true})
	return Serve(o, func(r *http.Request) *mcp.Server {
		if r.URL.Query().Get("tools") == all {
			return every
		}
		return some
	})
}

// Serve is ServeHTTP for servers of New to which more was added.
func Serve(o HTTPOptions, server func(*http.Request) *mcp.Server) http.Handler {
	h := &handler{o: o}
	h.mcp = mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // crossSite does that, and knows the installation's own names
	})
	mux := http.NewServeMux()
	mux.HandleFunc(Path, h.serve)
	mux.HandleFunc(MetadataPath, h.metadata)
	mux.HandleFunc(MetadataPath+Path, h.metadata)
	if o.Issuer == "" {
		mux.HandleFunc("GET "+IssuerPath, h.issuer)
		mux.HandleFunc("POST "+TokenPath, h.token)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.crossSite(r) {
			http.Error(w, "this is no name of the installation (--http-url sets the one by which others reach it)", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

type handler struct {
	o   HTTPOptions
	mcp http.Handler
}

// passKey is where the token's information has the request.
const passKey = "request"

// admitted is a request that a token lets in.
type admitted struct {
	caller gateway.Caller
	ctx    context.Context //nolint:containedctx // the request's own, which the SDK does not pass on in older revisions
}

// serve serves the requests of clients with a token.
func (h *handler) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if h.crossOrigin(w, r) {
		return
	}
	if set := r.URL.Query().Get("tools"); set != "" && set != all {
		http.Error(w, "tools is all, or is left out", http.StatusBadRequest)
		return
	}
	resource := h.resource(r)
	metadata, err := url.Parse(resource)
	if err != nil {
		http.Error(w, "the Host cannot be read", http.StatusBadRequest)
		return
	}
	metadata.Path = MetadataPath + metadata.Path
	var refused error
	verify := func(ctx context.Context, token string, r *http.Request) (*auth.TokenInfo, error) {
		caller, err := h.o.Service.Admit(ctx, token)
		if err != nil {
			refused = err
			return nil, auth.ErrInvalidToken
		}
		a := admitted{caller, r.Context()}
		return &auth.TokenInfo{UserID: string(caller.Agent) + "#" + caller.Worker, Expiration: caller.Expires, Extra: map[string]any{passKey: a}}, nil
	}
	verified := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: metadata.String(), AllowMissingExpiration: true})
	answer := &answering{ResponseWriter: w, h: h, refused: &refused}
	verified(http.HandlerFunc(h.bounded)).ServeHTTP(answer, r)
}

// maxBatch is how many calls one request has at most.
const maxBatch = 20

// ofOneCall is about what is buffered of the answer to one call, besides what the broker answers.
const ofOneCall = 64 << 10

// bounded serves a request whose calls are few, after each was charged as a request of its own.
// None of them is run before that.
func (h *handler) bounded(w http.ResponseWriter, r *http.Request) {
	a, _ := auth.TokenInfoFromContext(r.Context()).Extra[passKey].(admitted)
	leave, err := a.caller.EnterWait()
	if err != nil {
		h.refuse(w, err)
		return
	}
	defer leave()
	if r.Method != http.MethodPost {
		h.mcp.ServeHTTP(w, r)
		return
	}
	body, err := a.caller.ReadBody(w, r)
	switch refusal := new(session.Refusal); {
	case errors.As(err, &refusal) && refusal.Code == session.TooLarge:
		http.Error(w, refusal.Message, http.StatusRequestEntityTooLarge)
		return
	case errors.As(err, &refusal):
		h.refuse(w, err)
		return
	case err != nil:
		http.Error(w, "the body ends early", http.StatusBadRequest)
		return
	}
	calls, err := callsIn(body)
	if err != nil {
		fail(w, http.StatusBadRequest, nil, jsonrpc.CodeParseError, "the batch is no JSON")
		return
	}
	if calls > maxBatch {
		fail(w, http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a batch has at most %d calls", maxBatch))
		return
	}
	if err := a.caller.Charge(calls); err != nil {
		h.refuse(w, err)
		return
	}
	release, err := a.caller.Buffer(len(body) + calls*ofOneCall)
	if err != nil {
		h.refuse(w, err)
		return
	}
	defer release()
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := &rpcOnly{ResponseWriter: w, request: body}
	h.mcp.ServeHTTP(answer, r)
	answer.end()
}

// callsIn counts the calls of a request. Beyond those that a batch may have, it reads no more.
func callsIn(body []byte) (n int, err error) {
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return 1, nil
	}
	batch := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := batch.ReadToken(); err != nil {
		return 0, err
	}
	for batch.PeekKind() != ']' && n <= maxBatch {
		if err := batch.SkipValue(); err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// codeRefused is that of a JSON-RPC error for what the broker does not take now.
const codeRefused = -32000

// refusedError is a refusal as a JSON-RPC error, of what is no tool.
func refusedError(r *session.Refusal) error {
	return &jsonrpc.Error{Code: codeRefused, Message: string(r.Code) + ": " + r.Message}
}

// refuse answers a request that exceeds the caller's limits.
func (h *handler) refuse(w http.ResponseWriter, err error) {
	refusal := h.o.Service.Refusal(err)
	w.Header().Set("Retry-After", gateway.RetryAfter(refusal))
	fail(w, refusal.Code.Status(), nil, codeRefused, string(refusal.Code)+": "+refusal.Message)
}

// fail answers a request of which nothing was run.
func fail(w http.ResponseWriter, status int, id jsontext.Value, code int64, why string) {
	data, err := json.Marshal(object{"jsonrpc": "2.0", "id": id, "error": object{"code": code, "message": why}}, json.Deterministic(true))
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
}

// answering gives another answer where it is not the token that is refused.
type answering struct {
	http.ResponseWriter
	h        *handler
	refused  *error
	answered bool // otherwise
}

func (a *answering) WriteHeader(status int) {
	if err := *a.refused; err != nil && !errors.Is(err, custody.ErrToken) {
		a.answered = true
		a.Header().Del("WWW-Authenticate")
		a.h.refuse(a.ResponseWriter, err)
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answering) Write(data []byte) (int, error) {
	if a.answered {
		return len(data), nil
	}
	return a.ResponseWriter.Write(data)
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
	return h.base(r) + Path
}

// base is the URL of the installation, as the client calls it.
func (h *handler) base(r *http.Request) string {
	switch {
	case h.o.URL != "":
		return strings.TrimSuffix(h.o.URL, "/")
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
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
	ctx, end := a.caller.Until(ctx)
	return ctx, func() { stop(); end(); cancel(nil) }, bearer{a.caller}, nil
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
