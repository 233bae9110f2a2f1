package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// stdioClient starts parley mcp as an assistant does.
func stdioClient(ctx context.Context, t *testing.T, args ...string) func(tool string, args map[string]any) map[string]any {
	t.Helper()
	cmd := exec.CommandContext(ctx, "parley", append([]string{"mcp", "--tools", "all"}, args...)...)
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	testkit.Must(t, err)
	t.Cleanup(func() { s.Close() })
	return func(tool string, args map[string]any) (found map[string]any) {
		t.Helper()
		res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		testkit.Must(t, err)
		if res.IsError {
			t.Fatalf("%s is refused: %s", tool, res.Content[0].(*mcp.TextContent).Text)
		}
		data, err := json.Marshal(res.StructuredContent)
		testkit.Must(t, err)
		testkit.Must(t, json.Unmarshal(data, &found))
		return found
	}
}

// GATEWAYS.md G6: over stdio an agent signs with its own key, or a hosted one has a token; whoever
// waits gets its turn although the broker restarts meanwhile.
func TestMCPOverStdio(t *testing.T) {
	t.Parallel()
	const alpha, beta = performatives.Agent("agent://acme.com/alpha"), performatives.Agent("agent://widgets.co/beta")
	w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0"})
	key := filepath.Join(t.TempDir(), "alpha.nk")
	testkit.WriteKeys(t, key, w.Principal(alpha).Key)
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: beta})
	testkit.Must(t, err)
	token, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: beta})
	testkit.Must(t, err)

	buyer := stdioClient(w.Ctx, t, "--as", string(alpha), "--key", key, "--url", w.URL)
	vendor := stdioClient(w.Ctx, t, "--token", token.Token, "--http", "http://"+w.HTTPAddr)
	opened := buyer("open_session", map[string]any{"with": []any{beta}, "purpose": "cups", "invitationTimeoutMs": 600000})
	id := opened["sessionId"]
	if turn := vendor("wait_for_turn", nil); turn["sessionId"] != id || turn["referenceId"] != "invitation" {
		t.Fatalf("the vendor gets %v", turn)
	}
	vendor("accept", map[string]any{"sessionId": id, "referenceId": "invitation"})
	vendor("propose", map[string]any{"sessionId": id, "type": "service-agreement", "subject": "cups", "terms": map[string]any{"price": 5}})
	offer := buyer("wait_for_turn", map[string]any{"sessionId": id})
	counters := map[string]any{"sessionId": id, "referenceId": offer["referenceId"], "terms": map[string]any{"price": 4}, "idempotencyKey": "4"}
	first := buyer("counter", counters)
	if again := buyer("counter", counters); again["messageId"] != first["messageId"] || again["duplicate"] != true {
		t.Errorf("the counter that is repeated is %v, was %v", again, first)
	}

	waited := make(chan map[string]any)
	go func() { waited <- buyer("wait_for_turn", map[string]any{"sessionId": id}) }()
	w.Down()
	w.Up()
	vendor = stdioClient(w.Ctx, t, "--token", token.Token, "--http", "http://"+w.HTTPAddr) // which has another port now
	turn := vendor("wait_for_turn", map[string]any{"sessionId": id})
	countered := vendor("counter", map[string]any{"sessionId": id, "referenceId": turn["referenceId"], "terms": map[string]any{"price": 4.5}})
	if turn := <-waited; turn["status"] != "turn" || turn["referenceId"] != countered["referenceId"] {
		t.Errorf("after the restart the buyer gets %v, want %v", turn, countered["referenceId"])
	}
	buyer("accept", map[string]any{"sessionId": id, "referenceId": countered["referenceId"]})
	if verified := vendor("verify_transcript", map[string]any{"sessionId": id}); verified["verified"] != true {
		t.Errorf("the transcript is %v", verified)
	}
}
