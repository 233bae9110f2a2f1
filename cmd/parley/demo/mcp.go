package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// mcpPath is where the broker's HTTP serves MCP.
const mcpPath = "/mcp"

// tools are what assistants call over MCP.
type tools struct {
	*player
	sessions map[*actor]*mcp.ClientSession
}

func (t *tools) close() {
	for _, s := range t.sessions {
		s.Close() //nolint:errcheck // each request stands for itself
	}
}

// say calls a tool, in the scene's session. A wait is for what comes after the newest entry, or
// for the agent's turn.
func (t *tools) say(ctx context.Context, a *actor, tool string, body jsontext.Value, _ *actor) (string, error) {
	s := t.sessions[a]
	if s == nil {
		made, err := mcp.NewClient(&mcp.Implementation{Name: "parley-demo", Version: api.Version}, nil).Connect(ctx, &mcp.StreamableClientTransport{
			Endpoint: t.stage.http + mcpPath + "?tools=all", HTTPClient: &http.Client{Transport: bearer{a.token}}, DisableStandaloneSSE: true,
		}, nil)
		if err != nil {
			return "", err
		}
		t.sessions[a], s = made, made
	}
	var args map[string]any
	if err := json.Unmarshal(body, &args); err != nil {
		return "", err
	}
	if n := len(t.entries); n > 0 {
		args["sessionId"] = t.session
		if tool == "wait_for_turn" {
			args["since"] = n - 1
		}
	}
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", err
	}
	if r.IsError {
		why, _ := json.Marshal(r.Content)
		return "", fmt.Errorf("refused: %s", why)
	}
	data, err := json.Marshal(r.StructuredContent)
	if err != nil {
		return "", err
	}
	var got struct {
		Session performatives.SessionID `json:"sessionId"`
		State   string                  `json:"state"`
		Status  string                  `json:"status"` // of a wait
		Allowed []string                `json:"allowed"`
	}
	if err := json.Unmarshal(data, &got); err != nil {
		return "", err
	}
	t.is(got.Session)
	result := got.State
	if got.Status != "" {
		result = fmt.Sprintf("%s, %s; allowed: %s", got.Status, got.State, strings.Join(got.Allowed, ", "))
	}
	return result, t.did(ctx, a, "calls "+tool+" → "+result)
}

// bearer sends an agent's token with each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}
