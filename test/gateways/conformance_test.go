//go:build gateways

package gateways

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	gateway "github.com/parley-asp/parley/gateway/mcp"
	"github.com/parley-asp/parley/test/testkit"
)

// conforms runs what MCP's official runner requires of both revisions, over the wire of each. The
// scenarios that fail are those of testdata/mcp-SERVER-REVISION.yaml, all of them and no others, and
// as many checks pass in all.
func conforms(t *testing.T, server, url, token string, passed map[string]int) {
	for revision, want := range passed {
		t.Run(revision, func(t *testing.T) {
			failing, err := filepath.Abs(fmt.Sprintf("testdata/mcp-%s-%s.yaml", server, revision))
			testkit.Must(t, err)
			env := []string{"TOKEN=" + token, "NODE_OPTIONS=--import=" + filepath.Join(*installed, "mcp_token.mjs")}
			printed := string(must(t)(node(t, env, "node_modules/@modelcontextprotocol/conformance/dist/index.js",
				"server", "--url", url, "--requirements", revision, "--expected-failures", failing)))
			if total := regexp.MustCompile(`Total: (\d+) passed`).FindStringSubmatch(printed); total == nil || total[1] != fmt.Sprint(want) {
				t.Errorf("%v, want %d\n%s", total, want, printed)
			}
		})
	}
}

// The program as it is shipped, with logins, tokens and without sessions of MCP.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	url, token := shipped(t)
	conforms(t, "shipped", url, token, map[string]int{"2025-11-25": 38, "2026-07-28": 107})
}

// The same gateway with the fixtures that the runner's scenarios call.
func TestMCPConformanceWithFixtures(t *testing.T) {
	t.Parallel()
	w, env := hosts(t)
	server := gateway.New(gateway.Options{Caller: gateway.Admitted, Change: wants, AllTools: true})
	fixtures(server)
	s := httptest.NewServer(gateway.Serve(gateway.HTTPOptions{Service: w.Server.Broker.Service}, func(*http.Request) *mcp.Server { return server }))
	t.Cleanup(s.Close)
	conforms(t, "fixtures", local(s.URL), tokenOf(env, "BUYER"), map[string]int{"2025-11-25": 54, "2026-07-28": 121})
}

// local is the URL of a gateway at localhost, which is the only host that the runner sends.
func local(base string) string {
	return strings.Replace(base, "127.0.0.1", "localhost", 1) + gateway.Path
}

// shipped builds and starts the program, and returns the URL of its /mcp and a token.
func shipped(t *testing.T) (url, token string) {
	t.Helper()
	program, data := filepath.Join(t.TempDir(), "parley"), t.TempDir()
	must(t)(exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s", "-o", program, "github.com/parley-asp/parley/cmd/parley").CombinedOutput())
	cmd := exec.CommandContext(t.Context(), program, "serve", "--data", data, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	printed, err := cmd.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Wait() }) //nolint:errcheck // it was told to stop
	said := map[string]string{}
	for lines := bufio.NewScanner(printed); said["operator"] == "" && lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 {
			said[words[0]] = words[1]
		}
	}
	go io.Copy(io.Discard, printed) //nolint:errcheck // it ends with the program
	parley := func(args ...string) string {
		return string(must(t)(run(t, nil, program, append(args, "--url", said["NATS"], "--data", data)...)))
	}
	parley("agent", "add", string(buyer), "--hosted")
	return local(said["HTTP"]), strings.TrimSpace(parley("token", "add", string(buyer)))
}
