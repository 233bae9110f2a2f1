package mcpgateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/session"
)

// Forward makes a server that passes its clients' requests to the gateway at a URL, with a token, through a transport
// whose refusals are told, for all tools or the kit. What may be repeated is repeated while the gateway is away.
func Forward(url, token string, through http.RoundTripper, all bool) *mcp.Server {
	if all {
		url += AllTools
	}
	f := &forwarder{all: all, reading: map[string]underway{}, transport: &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: withToken{token, through}}, DisableStandaloneSSE: true, MaxRetries: -1,
	}}
	server := New(Options{AllTools: all})
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
	answer, err := w.next.RoundTrip(r)
	if err == nil {
		if err = refusedBy(answer); err != nil {
			answer.Body.Close() //nolint:errcheck // it is not read
			return nil, err
		}
	}
	return answer, err
}

// refusedBy is why the gateway did not pass a request on. To the client of the SDK it was never sent: any other error
// ends the connection, and with it what else is asked.
func refusedBy(answer *http.Response) error {
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		return custody.ErrToken
	case http.StatusRequestEntityTooLarge, http.StatusRequestHeaderFieldsTooLarge: // a URI is in a header, too
		return session.RefuseTooLarge(gateway.MaxBody, "what is sent at once has at most %d bytes", gateway.MaxBody)
	case http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // it is a number
		return api.RateLimited("requests", time.Duration(seconds)*time.Second, "too many requests, or too many at once; nothing was said")
	}
	return nil
}

// A forwarder passes requests on.
type forwarder struct {
	all       bool
	transport mcp.Transport

	mu      sync.Mutex
	session *mcp.ClientSession // nil until it is needed

	reading map[string]underway // by negotiation; guarded by counts
	counts  sync.Mutex
}

// underway are calls that read a negotiation and have no answer yet.
type underway struct {
	count int
	began time.Time // the newest
}

// oneStep is within what time a model's calls are of one step. Who waits for longer may have others decide meanwhile.
const oneStep = time.Second

// crosses refuses an answer that names nothing about a negotiation that is being read: models make several calls
// in one step, and decide on what came before. done is to be called once the call has its answer.
func (f *forwarder) crosses(t tool, args []byte) (done func(), err error) {
	var q chosen
	if json.Unmarshal(args, &q) != nil || q.ID == "" {
		return func() {}, nil // the gateway says what is wrong
	}
	f.counts.Lock()
	defer f.counts.Unlock()
	now := f.reading[string(q.ID)]
	if t.hints != reads {
		if p, _ := actionOf(q.Action); now.count > 0 && time.Since(now.began) < oneStep && q.Reference == "" && q.Fills["referenceId"] == nil && q.IfHead == "" && gateway.Answers(p) {
			return nil, session.Refuse(session.ChainConflict, "you are reading this negotiation at the same time, and nothing was said: decide on what you read, or give a referenceId")
		}
		return func() {}, nil
	}
	f.reading[string(q.ID)] = underway{now.count + 1, time.Now()}
	return func() {
		f.counts.Lock()
		defer f.counts.Unlock()
		now := f.reading[string(q.ID)]
		if now.count--; now.count > 0 {
			f.reading[string(q.ID)] = now
		} else {
			delete(f.reading, string(q.ID))
		}
	}, nil
}

// forward passes on what only the gateway can answer.
func (f *forwarder) forward(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		switch r := r.(type) {
		case *mcp.CallToolRequest:
			params := &mcp.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments}
			t := named(r.Params.Name, f.all)
			done, err := f.crosses(t, r.Params.Arguments)
			if err != nil {
				return (&call{}).refused(ctx, t, nil, err), nil
			}
			defer done()
			res, err := f.try(ctx, t.repeatable(r.Params.Arguments), func(ctx context.Context, s *mcp.ClientSession) (mcp.Result, error) {
				return s.CallTool(ctx, params)
			})
			if _, is := errors.AsType[*session.Refusal](err); is {
				return (&call{}).refused(ctx, t, nil, err), nil
			}
			return res, err
		case *mcp.ReadResourceRequest:
			return f.read(ctx, func(ctx context.Context, s *mcp.ClientSession) (mcp.Result, error) {
				return s.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.Params.URI})
			})
		case *mcp.ListResourcesRequest:
			params := &mcp.ListResourcesParams{}
			if r.Params != nil {
				params.Cursor = r.Params.Cursor
			}
			return f.read(ctx, func(ctx context.Context, s *mcp.ClientSession) (mcp.Result, error) {
				return s.ListResources(ctx, params)
			})
		default:
			return next(ctx, method, r)
		}
	}
}

// named finds a tool by its name. The zero tool, if there is none, only reads.
func named(name string, all bool) (found tool) {
	for _, t := range tools(all) {
		if t.name == name {
			found = t
		}
	}
	return found
}

// repeatable reports whether a call says nothing twice if it is repeated: it only reads, or has
// a key.
func (t tool) repeatable(args []byte) bool {
	var has struct {
		Key string `json:"idempotencyKey"`
	}
	return t.hints == reads || json.Unmarshal(args, &has) == nil && has.Key != ""
}

// read reads a resource, or which there are.
func (f *forwarder) read(ctx context.Context, do func(context.Context, *mcp.ClientSession) (mcp.Result, error)) (mcp.Result, error) {
	res, err := f.try(ctx, true, do)
	if refusal, is := errors.AsType[*session.Refusal](err); is {
		return nil, refusedError(refusal)
	}
	return res, err
}

// patience is how long a call takes at most, with all its repeats: clients give up after a minute.
const patience = api.LongestWait + 5*time.Second

// unanswered are the codes that the SDK gives to a request which the gateway did not answer:
// the connection was closed, at either end, or the request could not be sent.
var unanswered = []int64{-32003, -32004, -32005}

// try does something with a connection. A gateway that is away is asked again for what may be repeated.
func (f *forwarder) try(ctx context.Context, again bool, do func(context.Context, *mcp.ClientSession) (mcp.Result, error)) (mcp.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		s, err := f.connect(ctx)
		connected := err == nil
		var res mcp.Result
		if connected {
			res, err = do(ctx, s)
		}
		if err == nil {
			return res, nil
		}
		if answer, is := errors.AsType[*jsonrpc.Error](err); is && !slices.Contains(unanswered, answer.Code) {
			return nil, answer
		}
		if refusal, is := errors.AsType[*session.Refusal](err); is {
			return nil, refusal
		}
		if ctx.Err() == nil {
			f.drop(s)
		}
		switch {
		case !again && !connected:
			return nil, session.Refuse(session.Unavailable, "nothing was said, for the broker cannot be reached: %v", err)
		case !again: // it may have been said
			return nil, session.Refuse(session.Unavailable, "the broker did not answer; see whether it was said before you repeat it, or give an idempotencyKey: %v", err)
		case background.Pause(ctx, retryWait) != nil:
			return nil, session.Refuse(session.Unavailable, "the broker cannot be reached: %v", err)
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
