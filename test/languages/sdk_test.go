//go:build languages

package languages

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// compiled is the TypeScript party with the SDK, as JavaScript.
func compiled(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`), 0o600))
	tsc := exec.CommandContext(t.Context(), filepath.Join(*installed, "node_modules", ".bin", "tsc"), "--strict", "--module", "nodenext",
		"--target", "es2022", "--lib", "es2023,dom,dom.iterable,esnext.disposable", "--rootDir", filepath.Join("..", ".."), "--outDir", dir, "party.ts")
	if out, err := tsc.CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v\n%s", err, out)
	}
	return filepath.Join(dir, "test", "languages", "party.js")
}

const colleague, approver = performatives.Agent("agent://acme.com/compliance"), performatives.Agent("human://acme.com/alice")

// TestSDKs has agents in Python and TypeScript, a negotiator by a policy and a model with the tools of MCP
// negotiate with each other in every mode. In asp/1 the buyer of an SDK has a colleague, in the other
// language, check the offer, and a human approve it: once each.
func TestSDKs(t *testing.T) {
	w := testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0"})
	python := filepath.Join(*installed, "python", "bin", "python")
	programs := map[string][]string{"python": {python, "party.py"}, "typescript": {"node", compiled(t)}, "tools": {python, "tools.py"}}
	policy, err := negotiator.Parse([]byte(cupsPolicy))
	testkit.Must(t, err)
	others := map[string]string{"python": "typescript", "typescript": "python"}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go approves(ctx, w.Client(approver))
	key := w.Server.Broker.Command.Key()
	for _, c := range []struct{ buys, sells, mode string }{
		{"python", "typescript", "asp/1"},
		{"typescript", "python", "asp/1"},
		{"python", "negotiator", "asp/1"},
		{"typescript", "negotiator", "asp/1"},
		{"tools", "python", "asp/1"},
		{"tools", "typescript", "asp/1"},
		{"tools", "negotiator", "asp/1"},
		{"python", "typescript", "bilateral/1"},
		{"typescript", "negotiator", "bilateral/1"},
		{"python", "typescript", "convergent/1"},
		{"typescript", "python", "convergent/1"},
		{"python", "typescript", "binding/1"},
		{"typescript", "negotiator", "binding/1"},
	} {
		of := strings.ReplaceAll(c.buys+"-"+c.sells+"-"+c.mode, "/", "-")
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
			defer cancel()
			buys, sells, checks := buyer+performatives.Agent("-"+of), seller+performatives.Agent("-"+of), colleague+performatives.Agent("-"+of)
			run := func(language, role string, self performatives.Agent, best int) *worker {
				return launch(t, programs[language], "PYTHONPATH="+filepath.Join("..", "..", "sdk", "python", "src"), "PARLEY_URL=http://"+w.HTTPAddr,
					"PARLEY_TOKEN="+string(self), "ROLE="+role, "MODE="+c.mode, "PEER="+string(sells), "COLLEAGUE="+string(checks), "BEST="+strconv.Itoa(best))
			}
			asks := c.mode == "asp/1" && c.buys != "tools"
			if asks {
				defer run(others[c.buys], "colleague", checks, 0).stop()
			}
			if c.sells == "negotiator" {
				go negotiates(ctx, &negotiator.Agent{Self: sells, Policy: policy, Broker: w.Client(sells), Worker: "n"})
			} else {
				defer run(c.sells, "seller", sells, 80).stop()
			}
			id, price, _ := strings.Cut(strings.TrimSpace(run(c.buys, "buyer", buys, 100).says(ctx)), " ")
			if paid, err := strconv.ParseFloat(price, 64); err != nil || paid < 80 || paid > 100 {
				t.Errorf("%s is paid", price)
			}
			entries, err := w.Client(buys).Transcript(ctx, performatives.SessionID(id))
			testkit.Must(t, err)
			verifier, acts := transcript.NewVerifier(key, transcript.Expect{AllowUnsigned: true}), map[performatives.Performative]int{}
			for _, e := range entries {
				acts[e.Message.Performative]++
				for _, fault := range verifier.Add(e.Bytes) {
					t.Error(fault)
				}
			}
			want := 0
			if asks {
				want = 1
			}
			if acts[performatives.Delegate] != want || acts[performatives.Escalate] != want {
				t.Errorf("the acts are %v", acts)
			}
		})
	}
}

// approves has a human approve whatever is asked.
func approves(ctx context.Context, human *client.Client) {
	testkit.Until(ctx, func() bool { //nolint:errcheck // it ends with the test
		for item, err := range human.Escalations(ctx, api.ListEscalations{}) {
			if err != nil {
				return false
			}
			human.Session(item.Session).Inform(ctx, performatives.Resolution, map[string]any{"escalationId": item.ID, "decision": "approved"}) //nolint:errcheck // or it is asked again
		}
		return false
	})
}

const cupsPolicy = "subject: cups\nissues: {price: {weight: 1, best: 120, worst: 80, step: 5}}\nfixed: {currency: EUR}\nreservation: 0.1\nrounds: 4\n"

// negotiates has a negotiator take its turns.
func negotiates(ctx context.Context, n *negotiator.Agent) {
	testkit.Until(ctx, func() bool { //nolint:errcheck // it ends with the test
		n.Step(ctx) //nolint:errcheck // a turn that it leaves waits again
		return false
	})
}
