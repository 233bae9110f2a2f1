package mcpgateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
)

// Forward makes a server that passes its clients' requests to the gateway at a URL, with a
// token. What may be repeated is repeated while the gateway is away.
func Forward(url, token string) *mcp.Server {
	f := &forwarder{transport: &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: withToken{token, http.DefaultTransport}}, DisableStandaloneSSE: true, MaxRetries: -1,
	}}
	server := New(Options{})
	server.AddReceivingMiddleware(f.forward)
	return server
}

// withToken adds a token to requests.
type withToken struct {
	token string
	next  http.RoundTripper
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.next.RoundTrip(r)
}

// A forwarder passes requests on.
type forwarder struct {
	transport mcp.Transport

	mu      sync.Mutex
	session *mcp.ClientSession // nil until it is needed
}

// forward passes on what only the gateway can answer.
func (f *forwarder) forward(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		switch r := r.(type) {
		case *mcp.CallToolRequest:
			params := &mcp.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments}
			return f.try(ctx, repeatable(r.Params), func(s *mcp.ClientSession) (mcp.Result, error) { return s.CallTool(ctx, params) })
		case *mcp.ReadResourceRequest:
			return f.try(ctx, true, func(s *mcp.ClientSession) (mcp.Result, error) {
				return s.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.Params.URI})
			})
		case *mcp.ListResourcesRequest:
			return f.try(ctx, true, func(s *mcp.ClientSession) (mcp.Result, error) {
				return s.ListResources(ctx, &mcp.ListResourcesParams{Cursor: r.Params.Cursor})
			})
		default:
			return next(ctx, method, r)
		}
	}
}

// repeatable tells whether a call says nothing twice if it is repeated: it only reads, or has
// a key.
func repeatable(q *mcp.CallToolParamsRaw) bool {
	var has struct {
		Key string `json:"idempotencyKey"`
	}
	return slices.ContainsFunc(tools(), func(t tool) bool { return t.name == q.Name && t.hints == reads }) ||
		json.Unmarshal(q.Arguments, &has) == nil && has.Key != ""
}

// try does something with a connection. A gateway that is away is asked again for what may be repeated.
func (f *forwarder) try(ctx context.Context, again bool, do func(*mcp.ClientSession) (mcp.Result, error)) (mcp.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, longest+api.LongestWait)
	defer cancel()
	for until := time.Now().Add(longest); ; {
		s, err := f.connect(ctx)
		var res mcp.Result
		if err == nil {
			res, err = do(s)
		}
		if _, answered := errors.AsType[*jsonrpc.Error](err); err == nil || answered {
			return res, err
		}
		f.drop(s)
		if !again || time.Now().After(until) || background.Pause(ctx, retryWait) != nil {
			return nil, err
		}
	}
}

func (f *forwarder) connect(ctx context.Context) (*mcp.ClientSession, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.session != nil {
		return f.session, nil
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "parley", Version: api.Version}, nil)
	s, err := client.Connect(ctx, f.transport, nil)
	if err == nil {
		f.session = s
	}
	return s, err
}

// drop forgets a connection that failed.
func (f *forwarder) drop(s *mcp.ClientSession) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s != nil && f.session == s {
		f.session = nil
		s.Close() //nolint:errcheck // it failed
	}
}
