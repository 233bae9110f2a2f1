//go:build languages

package languages

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

const human = performatives.Agent("human://acme.com/alice")

// python runs a program that .ci/languages has installed, in a directory of its own.
func python(ctx context.Context, t *testing.T, dir, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(*installed, "python", "bin", program), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// TestSchemathesis holds every answer of HTTP to the OpenAPI description: with ids that do not exist, and
// with those of a session and an escalation.
func TestSchemathesis(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*testkit.Patience)
	defer cancel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0", Sync: time.Minute})
	opened := post(ctx, t, w, human, "", `{"with":["agent://acme.com/buyer"],"purpose":"cups","terms":{"invitationTimeoutMs":600000}}`)
	post(ctx, t, w, "agent://acme.com/buyer", "/"+string(opened.Session)+"/messages", `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`)
	escalated := post(ctx, t, w, "agent://acme.com/buyer", "/"+string(opened.Session)+"/messages",
		`{"performative":"ESCALATE","body":{"reason":"policy-ambiguous","urgency":"low","context":"odd"}}`)
	const parameters = "[parameters]\n\"query.waitMs\" = 1\n" // or a request waits for a turn that does not come
	for name, run := range map[string]struct {
		config string
		args   []string
	}{
		"no session": {config: parameters, args: []string{"--phases", "coverage,fuzzing", "--max-examples", "5"}},
		"a session": {
			config: parameters + fmt.Sprintf("\"path.sessionId\" = %q\n\"path.messageId\" = %q\n\"path.escalationId\" = %q\n\"path.agentId\" = %q\n",
				opened.Session, opened.Message, escalated.Message, human),
			args: []string{"--phases", "coverage", "--include-path-regex", `Id\}`, "--exclude-path-regex", "events$", "--exclude-method", "DELETE"}, // a stream does not end; CLOSE ends the session
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			testkit.Must(t, os.WriteFile(filepath.Join(dir, "schemathesis.toml"), []byte(run.config), 0o600))
			python(ctx, t, dir, "st", append([]string{
				"--config-file", "schemathesis.toml", "run", "http://" + w.HTTPAddr + "/openapi.json", "-H", "Authorization: Bearer " + string(human),
				"--seed", "1", "--request-timeout", "1", "--request-retries", "5", "--warnings", "off", "--suppress-health-check", "all",
				"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance," +
					"response_headers_conformance,allow_header_conformance,negative_data_rejection,ignored_auth",
			}, run.args...)...)
		})
	}
}

// TestGeneratedClient has a client that is generated from the OpenAPI description negotiate.
func TestGeneratedClient(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
	defer cancel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0"})
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "openapi.json"), request(ctx, t, http.MethodGet, "http://"+w.HTTPAddr+"/openapi.json", human, ""), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("post_hooks: []\n"), 0o600))
	python(ctx, t, dir, "openapi-python-client", "generate", "--path", "openapi.json", "--config", "config.yaml", "--meta", "none",
		"--output-path", filepath.Join(dir, "parley"), "--fail-on-warning")
	plays, err := filepath.Abs("generated.py")
	testkit.Must(t, err)
	t.Setenv("BASE", "http://"+w.HTTPAddr)
	python(ctx, t, dir, "python", plays)
}

// post sends a request for a session, or an act in one.
func post(ctx context.Context, t *testing.T, w *testkit.World, as performatives.Agent, path, body string) (a api.Acceptance) {
	t.Helper()
	testkit.Must(t, json.Unmarshal(request(ctx, t, http.MethodPost, "http://"+w.HTTPAddr+"/v1/asp/sessions"+path, as, body), &a))
	if !a.Accepted {
		t.Fatalf("%s is refused", body)
	}
	return a
}

func request(ctx context.Context, t *testing.T, method, url string, as performatives.Agent, body string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	testkit.Must(t, err)
	r.Header.Set("Authorization", "Bearer "+string(as))
	r.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(r)
	testkit.Must(t, err)
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	testkit.Must(t, err)
	return data
}
