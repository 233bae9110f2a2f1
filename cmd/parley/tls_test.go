package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-asp/parley/test/testkit"
)

// TestTLS runs the broker with TLS on all that listens, and commands that speak it.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	server, serverKey := ca.Issue("server")
	own, ownKey := ca.Issue("client")
	testscript.Run(t, testscript.Params{
		Files:               []string{"testdata/elsewhere/tls.txtar"},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"NATS", "WS", "HTTP"} {
				env.Setenv(name, testkit.FreeAddress(t))
			}
			env.Setenv("PARLEY_DATA", filepath.Join(env.WorkDir, "data"))
			env.Setenv("HOME", env.WorkDir)
			for name, file := range map[string]string{"CA": ca.File, "SERVER": server, "SERVER_KEY": serverKey, "OWN": own, "OWN_KEY": ownKey} {
				env.Setenv(name, file)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "capture": capture, "terminate": terminate, "hangup": hangup, "serves": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(serves("https://"+ts.Getenv("HTTP")+"/healthz", ca.File, own, ownKey))
			},
			"assists": func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(assists(args[0], args[1:]...)) },
		},
	})
}

// assists has an assistant list negotiations by 'parley mcp'; the answer must have a text.
func assists(want string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	program := exec.CommandContext(ctx, "parley", append([]string{"mcp"}, args...)...)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: program}, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "list_negotiations"})
	if err != nil {
		return err
	}
	if text := res.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, want) { //nolint:forcetypeassert // it is
		return fmt.Errorf("the answer %s lacks %s", text, want)
	}
	return nil
}

// serves returns when the broker answers over HTTPS.
func serves(url, ca, own, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	text, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	cert, err := tls.LoadX509KeyPair(own, key)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{cert}}}
	defer transport.CloseIdleConnections()
	return testkit.Serving(ctx, &http.Client{Transport: transport}, url)
}
