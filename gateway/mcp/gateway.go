// Package mcpgateway gives assistants that speak MCP the tools to negotiate (docs/GATEWAYS.md).
//
//	server := mcpgateway.New(mcpgateway.Options{Caller: mcpgateway.Only(caller), Log: log})
//	err := server.Run(ctx, &mcp.StdioTransport{})
//
// A tool decodes its arguments, says one act or calls verbs as its caller, and encodes the
// answer. No rule of the protocol lives here. These hold:
//   - A refusal is the result of a tool, with isError: the code, the sentence, and which tools
//     are allowed in the state that the session is in.
//   - What others wrote never reaches a description, a prompt or an instruction. In results it
//     is quoted, labelled with its author, and its invisible characters are escaped.
//   - The server holds nothing that a client needs between two requests, so any broker may answer
//     the next one, and a client that waits loses nothing when a broker restarts. It remembers how
//     far it showed a session, so that nothing is decided unseen.
package mcpgateway

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Caller is the principal for whom a client acts.
type Caller interface {
	Agent() performatives.Agent
	// Call calls a verb. Refusals are *session.Refusal.
	Call(ctx context.Context, verb string, request []byte) ([]byte, error)
	// Say submits an act, signed by the principal's key; an invitation without a session id opens
	// a new session. What is said again under the same key, if there is one, is answered with its
	// first acceptance. An act is refused if its ifHead, if there is one, is not the session's head.
	Say(ctx context.Context, id performatives.SessionID, key string, ifHead performatives.Hash, body performatives.Body, to performatives.Agent) (api.Acceptance, error)
	// Respond answers a turn that was picked up.
	Respond(ctx context.Context, q api.RespondTurn) (api.Acceptance, error)
	// Worker names the program among those of the principal, "" by default.
	Worker() string
	// ReadOnly says that it may say nothing.
	ReadOnly() bool
}

// Options say what is served, and to whom.
type Options struct {
	// Caller finds who calls, and until when: the context ends when the client is gone or may
	// call no more.
	Caller func(ctx context.Context, extra *mcp.RequestExtra) (context.Context, context.CancelFunc, Caller, error)
	// AllTools is to serve all tools, not only those that suffice to negotiate.
	AllTools bool
	Log      *zap.Logger
	Change   func(*mcp.ServerOptions) // of the server, for a suite that wants more than the gateway has
}

// Only is a Caller of Options for a server that acts for one principal.
func Only(c Caller) func(context.Context, *mcp.RequestExtra) (context.Context, context.CancelFunc, Caller, error) {
	return func(ctx context.Context, _ *mcp.RequestExtra) (context.Context, context.CancelFunc, Caller, error) {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, c, nil
	}
}

// New makes a server, for any transport.
func New(o Options) *mcp.Server {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	g := &server{o: o}
	told := textsOf(o.AllTools)
	options := &mcp.ServerOptions{Instructions: told.instructions, Capabilities: &mcp.ServerCapabilities{}}
	if o.Change != nil {
		o.Change(options)
	}
	s := mcp.NewServer(&mcp.Implementation{
		Name: "parley", Title: "parley", Version: api.Version, WebsiteURL: "https://github.com/parley-asp/parley",
	}, options)
	for _, t := range tools(o.AllTools) {
		s.AddTool(t.describe(), g.serve(t))
	}
	g.addResources(s)
	told.addPrompts(s)
	return s
}

type server struct {
	o    Options
	seen seen
}

// A call is one request of a client.
type call struct {
	Caller
	log   *zap.Logger
	seen  *seen
	shown []shown // by its answer
}

// enter finds who calls.
func (g *server) enter(ctx context.Context, extra *mcp.RequestExtra) (context.Context, context.CancelFunc, *call, error) {
	ctx, cancel, caller, err := g.o.Caller(ctx, extra)
	return ctx, cancel, &call{Caller: caller, log: g.o.Log, seen: &g.seen}, err
}

// ask calls a verb and reads its reply.
func ask[Q, A any](ctx context.Context, c *call, verb api.VerbOf[Q, A], request Q) (reply A, err error) {
	data, err := json.Marshal(request)
	if err != nil {
		return reply, err
	}
	answer, err := c.Call(ctx, verb.Name, data)
	if err != nil {
		return reply, err
	}
	return reply, json.Unmarshal(answer, &reply)
}

// refusal is what an error is to a client. What is no refusal is an internal cause: it is
// logged, and the client learns only that the broker cannot answer now.
func (c *call) refusal(err error) *session.Refusal {
	refusal, is := errors.AsType[*session.Refusal](err)
	if !is {
		if !errors.Is(err, context.Canceled) { // the client hung up
			c.log.Error("mcp", zap.Error(err))
		}
		refusal = session.Busy()
	}
	return refusal
}

// errReadOnly refuses acts for a token that only reads.
var errReadOnly = session.Refuse(session.Unauthorized, "the token is read-only: it can list, read and wait, and say nothing")

// retryWait is between two calls of a broker that cannot answer now.
const retryWait = 250 * time.Millisecond

// bearer is a caller in the broker's process, let in by a token. The broker signs for it.
type bearer struct{ of gateway.Caller }

func (b bearer) Agent() performatives.Agent { return b.of.Agent }
func (b bearer) Worker() string             { return b.of.Worker }
func (b bearer) ReadOnly() bool             { return b.of.ReadOnly }

func (b bearer) Call(ctx context.Context, verb string, request []byte) ([]byte, error) {
	return b.of.CallJSON(ctx, verb, request)
}

func (b bearer) Say(ctx context.Context, id performatives.SessionID, key string, ifHead performatives.Hash, body performatives.Body, to performatives.Agent) (accepted api.Acceptance, err error) {
	said := api.Say{Session: id, IfHead: ifHead, Performative: body.Act().String()}
	if said.Body, err = json.Marshal(body, json.Deterministic(true)); err != nil {
		return accepted, err
	}
	if to != "" {
		said.Recipient = quoted(string(to))
	}
	if key != "" {
		said.Key = "key " + key // one with HTTP's Idempotency-Key
	}
	accepted, err = b.of.Say(ctx, said)
	return accepted, unfit(err)
}

func (b bearer) Respond(ctx context.Context, q api.RespondTurn) (accepted api.Acceptance, err error) {
	return accepted, b.of.Call(ctx, api.TurnRespond.Verb, q, &accepted)
}
