//go:build languages

// Package languages runs the programs of docs/LANGUAGES.md as they stand there, and holds
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
	"regexp"
	"strings"
	"testing"

	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/transcript"
)

var installed = flag.String("installed", "", "the directory in which .ci/languages has installed Python and Node packages")

const (
	buyer  = performatives.Agent("agent://acme.com/procurement/alpha_1")
	seller = performatives.Agent("agent://widgets.co/Sales")
)

// program writes a code block of the page, such as "python buyer.py", where its packages are found.
func program(t *testing.T, block string) (path string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "LANGUAGES.md"))
	testkit.Must(t, err)
	found := regexp.MustCompile("(?s)```" + regexp.QuoteMeta(block) + "\n(.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatalf("docs/LANGUAGES.md has no block %q", block)
	}
	dir := t.TempDir()
	testkit.Must(t, os.Symlink(filepath.Join(*installed, "node_modules"), filepath.Join(dir, "node_modules")))
	_, name, _ := strings.Cut(block, " ")
	path = filepath.Join(dir, name)
	testkit.Must(t, os.WriteFile(path, found[1], 0o600))
	return path
}

// start runs a program of a principal; end waits for it and returns what it printed.
func start(t *testing.T, ctx context.Context, p *testkit.Principal, url string, command ...string) (end func() string) {
	t.Helper()
	seed, err := p.Key.Seed()
	testkit.Must(t, err)
	var out, faults bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "AGENT="+string(p.Agent), "PEER="+string(seller), "SEED="+string(seed), "NATS="+url)
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

// TestDeal has the Python buyer and the JavaScript seller of docs/LANGUAGES.md agree, and verifies
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
			sells := start(t, ctx, w.Principal(seller), url(w), "node", program(t, "js seller.mjs"))
			buys := start(t, ctx, w.Principal(buyer), w.URL, filepath.Join(*installed, "python", "bin", "python"), program(t, "python buyer.py"))
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
			verifier := transcript.NewVerifier(w.Key(), transcript.Expect{Session: performatives.SessionID(id), Length: 6})
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
