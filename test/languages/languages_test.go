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

// A worker is a program of a principal that runs.
type worker struct {
	*testing.T
	cmd         *exec.Cmd
	out, faults bytes.Buffer
	ended       chan error
}

// start runs a program of a principal until it ends, or the test does.
func start(t *testing.T, p *testkit.Principal, url string, command ...string) *worker {
	t.Helper()
	seed, err := p.Key.Seed()
	testkit.Must(t, err)
	login, err := testkit.LoginOf(t, p.Key).Seed()
	testkit.Must(t, err)
	return launch(t, command, "AGENT="+string(p.Agent), "PEER="+string(seller), "SEED="+string(seed), "LOGIN="+string(login), "NATS="+url)
}

// launch runs a program in an environment until it ends, or the test does.
func launch(t *testing.T, command []string, env ...string) *worker {
	t.Helper()
	w := &worker{T: t, cmd: exec.Command(command[0], command[1:]...), ended: make(chan error, 1)}
	w.cmd.Env = append(os.Environ(), env...)
	w.cmd.Stdout, w.cmd.Stderr = &w.out, &w.faults
	testkit.Must(t, w.cmd.Start())
	go func() { w.ended <- w.cmd.Wait() }()
	t.Cleanup(func() { w.cmd.Process.Kill() }) //nolint:errcheck // it may have ended
	return w
}

// says waits until a worker has ended, and is what it printed.
func (w *worker) says(ctx context.Context) string {
	w.Helper()
	select {
	case err := <-w.ended:
		if err != nil {
			w.Fatalf("%s: %v\n%s", w.cmd.Args, err, w.faults.String())
		}
	case <-ctx.Done():
		w.Fatalf("%s does not end\n%s", w.cmd.Args, w.faults.String())
	}
	return w.out.String()
}

// stop ends a worker, which must not have ended by itself.
func (w *worker) stop() {
	w.Helper()
	select {
	case err := <-w.ended:
		w.Errorf("%s died: %v\n%s%s", w.cmd.Args, err, w.out.String(), w.faults.String())
	default:
		testkit.Must(w, w.cmd.Process.Kill())
		<-w.ended
	}
}

// sells starts a seller, and buys a buyer.
func sells(t *testing.T, w *testkit.World, url string) *worker {
	t.Helper()
	return start(t, w.Principal(seller), url, "node", program(t, "seller.mjs"))
}

func buys(t *testing.T, w *testkit.World) *worker {
	t.Helper()
	return start(t, w.Principal(buyer), w.URL, filepath.Join(*installed, "python", "bin", "python"), program(t, "buyer.py"))
}

// agreed asserts that a buyer has agreed on 7, in a transcript that verifies and has this length.
func agreed(ctx context.Context, t *testing.T, w *testkit.World, said string, length int) performatives.SessionID {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(said), "\n")
	id, deal, _ := strings.Cut(lines[len(lines)-1], " ")
	var terms struct{ PricePerImage int }
	if err := json.Unmarshal([]byte(deal), &terms); err != nil || terms.PricePerImage != 7 {
		t.Fatalf("the buyer says %q", said)
	}
	entries, err := w.Client(buyer).Transcript(ctx, performatives.SessionID(id))
	testkit.Must(t, err)
	verifier := transcript.NewVerifier(w.Server.Broker.Command.Key(), transcript.Expect{Session: performatives.SessionID(id), Length: length})
	for _, e := range entries {
		for _, fault := range verifier.Add(e.Bytes) {
			t.Error(fault)
		}
	}
	for _, fault := range verifier.End() {
		t.Error(fault)
	}
	return performatives.SessionID(id)
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
			sold := sells(t, w, url(w))
			agreed(ctx, t, w, buys(t, w).says(ctx), 6)
			sold.stop()
		})
	}
}
