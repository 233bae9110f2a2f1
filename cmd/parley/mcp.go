package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/client/signing"
	mcpgateway "github.com/parley-asp/parley/gateway/mcp"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
)

func mcpCommand() *cobra.Command {
	cmd := connects(&cobra.Command{
		Use: "mcp", Short: "serve an assistant that speaks MCP, over stdio", Args: args(cobra.NoArgs),
		Long: `Serves the tools to negotiate over standard input and output, for an assistant that
starts this program (docs/GATEWAYS.md has its configuration).

With --as and --key the agent signs for itself: its key stays with this program, which
speaks NATS. With --token a hosted agent speaks over HTTP, and the broker signs.`,
		Example: `  parley mcp --as agent://acme.com/buyer --key buyer.nk
  parley mcp --token parley_… --http https://parley.acme.com`,
		RunE: runMCP,
	})
	cmd.Flags().String("tools", "", "`SET` of tools: all, or by default the five that suffice to negotiate")
	cmd.Flags().String("token", "", "`TOKEN` of a hosted agent; PARLEY_TOKEN keeps it out of the list of processes")
	cmd.Flags().String("http", "http://127.0.0.1:8080", "with --token: `URL` of the broker's HTTP")
	return cmd
}

func runMCP(cmd *cobra.Command, _ []string) error {
	ctx := cmd.Context()
	token, every := text(cmd, "token"), text(cmd, "tools") == "all"
	if token != "" {
		if text(cmd, "key") != "" {
			return usage(errors.New("--token is of a hosted agent, and --key of one that signs for itself: give one of them"))
		}
		if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return usage(errors.New("--token has a character that no token has, such as the end of a line"))
		}
		if u, err := url.Parse(text(cmd, "http")); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return usage(fmt.Errorf("--http %.200q is no URL such as https://parley.acme.com", text(cmd, "http")))
		}
		files, err := tlsFiles(cmd)
		if err != nil {
			return err
		}
		transport, err := files.Web()
		if err != nil {
			return usage(err)
		}
		return stdio(ctx, mcpgateway.Forward(strings.TrimSuffix(text(cmd, "http"), "/")+mcpgateway.Path, token, explained{transport}, every))
	}
	if text(cmd, "as") == "" {
		return usage(errors.New("--as says whom the assistant acts for, and --key signs; or --token"))
	}
	c, err := connect(ctx, cmd)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // the assistant is gone
	return stdio(ctx, mcpgateway.New(mcpgateway.Options{Caller: mcpgateway.Only(signing.New(c.principal)), AllTools: every}))
}

// explained requests are refused with what to do about a wrong certificate, which does not pass by itself.
type explained struct{ http.RoundTripper }

func (e explained) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := e.RoundTripper.RoundTrip(r)
	if do := server.WrongTLS(err, "--tls-ca"); do != "" {
		err = session.Refuse(session.Unavailable, "nothing was said, for the broker cannot be reached: %v. %s", err, do)
	}
	return answer, err
}

// stdio serves until the assistant closes standard input, or interrupts.
func stdio(ctx context.Context, server *mcp.Server) error {
	err := mcpgateway.Stdio(ctx, server, os.Stdin, os.Stdout)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was interrupted
	}
	return err
}
