package main

import (
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	mcpgateway "github.com/parley-asp/parley/gateway/mcp"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

func mcpCommand() *cobra.Command {
	cmd := connects(&cobra.Command{
		Use: "mcp", Short: "serve an assistant that speaks MCP, over stdio", Args: args(cobra.NoArgs),
		Long: `Serves the tools to negotiate over standard input and output, for an assistant that
starts this program (docs/MCP.md has its configuration).

With --as and --key the agent signs for itself: its key stays with this program, which
speaks NATS. With --token a hosted agent speaks over HTTP, and the broker signs.`,
		Example: `  parley mcp --as agent://acme.com/buyer --key buyer.nk
  parley mcp --token parley_… --http https://parley.acme.com`,
		RunE: runMCP,
	})
	cmd.Flags().String("token", "", "`TOKEN` of a hosted agent; PARLEY_TOKEN keeps it out of the list of processes")
	cmd.Flags().String("http", "http://127.0.0.1:8080", "with --token: `URL` of the broker's HTTP")
	return cmd
}

func runMCP(cmd *cobra.Command, _ []string) error {
	ctx := cmd.Context()
	token := text(cmd, "token")
	if token != "" {
		if text(cmd, "key") != "" {
			return usage(errors.New("--token is of a hosted agent, and --key of one that signs for itself: give one of them"))
		}
		return stdio(ctx, mcpgateway.Forward(strings.TrimSuffix(text(cmd, "http"), "/")+mcpgateway.Path, token))
	}
	if text(cmd, "as") == "" {
		return usage(errors.New("--as says whom the assistant acts for, and --key signs; or --token"))
	}
	c, err := connect(ctx, cmd)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // the assistant is gone
	return stdio(ctx, mcpgateway.New(mcpgateway.Options{Caller: mcpgateway.Only(&signing{Client: c.principal})}))
}

// stdio serves until the assistant closes standard input, or interrupts.
func stdio(ctx context.Context, server *mcp.Server) error {
	err := server.Run(ctx, &mcp.StdioTransport{})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was interrupted
	}
	return err
}

// signing is a caller by the Go SDK, which signs with its key.
type signing struct {
	*client.Client
	keys keys
}

func (s *signing) Worker() string { return "" }
func (s *signing) ReadOnly() bool { return false }

func (s *signing) Say(ctx context.Context, id performatives.SessionID, key string, body performatives.Body, to performatives.Agent) (api.Acceptance, error) {
	content, err := json.Marshal([]any{id, to, body.Act().String(), body}, json.Deterministic(true))
	if err != nil {
		return api.Acceptance{}, err
	}
	act := keyed{key: key, content: string(content), session: id, message: performatives.MessageID(newID())}
	if id == "" {
		act.session = performatives.SessionID(newID())
	}
	return s.keys.once(ctx, act, s.Submit, func(ctx context.Context, act keyed) (api.Acceptance, error) {
		options := []client.ActOption{client.As(act.message)}
		if to != "" {
			options = append(options, client.To(to))
		}
		receipt, err := s.Session(act.session).Say(ctx, body, options...)
		return receipt.Acceptance, err
	})
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func (s *signing) Call(ctx context.Context, verb string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, api.LongestWait+answerWithin)
	defer cancel()
	reply, err := s.Client.Call(ctx, verb, request)
	return reply, answered(err)
}

func (s *signing) Respond(ctx context.Context, q api.RespondTurn) (api.Acceptance, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	accepted, err := s.RespondTurn(ctx, q)
	return accepted, answered(err)
}

// answered makes a refusal of what went wrong on the way to the broker.
func answered(err error) error {
	if _, refused := errors.AsType[*session.Refusal](err); err == nil || refused {
		return err
	}
	return session.Refuse(session.Unavailable, "the broker did not answer: %s", err)
}
