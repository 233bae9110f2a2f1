//go:build languages

// Package languages runs the agents of examples/agents, and holds
// HTTP to its OpenAPI description: .ci/languages installs what they use, and runs this.
package languages

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

var installed = flag.String("installed", "", "the directory in which .ci/languages has installed Python and Node packages")

const (
	buyer  = performatives.Agent("agent://acme.com/procurement/alpha_1")
	seller = performatives.Agent("agent://widgets.co/Sales")
)

// program copies an agent of examples/agents to where its packages are found.
func program(t *testing.T, name string) (path string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "..", "examples", "agents", name))
	testkit.Must(t, err)
	dir := t.TempDir()
	testkit.Must(t, os.Symlink(filepath.Join(*installed, "node_modules"), filepath.Join(dir, "node_modules")))
	path = filepath.Join(dir, name)
	testkit.Must(t, os.WriteFile(path, source, 0o600))
	return path
}

// start runs a program of a principal; end waits for it and returns what it printed.
func start(t *testing.T, ctx context.Context, p *testkit.Principal, url string, command ...string) (end func() string) {
	t.Helper()
	seed, err := p.Key.Seed()
	testkit.Must(t, err)
	login, err := testkit.LoginOf(t, p.Key).Seed()
	testkit.Must(t, err)
	var out, faults bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "AGENT="+string(p.Agent), "PEER="+string(seller), "SEED="+string(seed), "LOGIN="+string(login), "NATS="+url)
	cmd.Stdout, cmd.Stderr = &out, &faults
	testkit.Must(t, cmd.Start())
	return func() string {
		t.Helper()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", filepath.Base(command[len(command)-1]), err, faults.String())
		}
		return out.String()
	}
}

// TestDeal has the Python buyer and the JavaScript seller of examples/agents agree, and verifies
// what they signed.
func TestDeal(t *testing.T) {
	for name, url := range map[string]func(*testkit.World) string{
		"NATS":      func(w *testkit.World) string { return w.URL },
		"WebSocket": func(w *testkit.World) string { return w.WebsocketURL },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
			defer cancel()
			w := testkit.NewWorld(t, testkit.Options{Websocket: "127.0.0.1:-1"})
			sells := start(t, ctx, w.Principal(seller), url(w), "node", program(t, "seller.mjs"))
			buys := start(t, ctx, w.Principal(buyer), w.URL, filepath.Join(*installed, "python", "bin", "python"), program(t, "buyer.py"))
			said := buys()
			sells()
			id, agreed, _ := strings.Cut(strings.TrimSpace(said), " ")
			var terms struct{ PricePerImage int }
			if err := json.Unmarshal([]byte(agreed), &terms); err != nil || terms.PricePerImage != 7 {
				t.Fatalf("the buyer says %q", said)
			}
			c := w.Client(buyer)
			entries, err := c.Transcript(ctx, performatives.SessionID(id))
			testkit.Must(t, err)
			verifier := transcript.NewVerifier(w.Server.Broker.Command.Key(), transcript.Expect{Session: performatives.SessionID(id), Length: 6})
			for _, e := range entries {
				for _, fault := range verifier.Add(e.Bytes) {
					t.Error(fault)
				}
			}
			for _, fault := range verifier.End() {
				t.Error(fault)
			}
		})
	}
}
