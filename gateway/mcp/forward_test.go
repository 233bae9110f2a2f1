package mcpgateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpgateway "github.com/parley-asp/parley/gateway/mcp"
	"github.com/parley-asp/parley/test/testkit"
)

// A broker that goes away in the middle of a call is asked again for what may be repeated; of
// what may not, and of a bad token, the assistant learns at once.
func TestForwardWhileAway(t *testing.T) {
	t.Parallel()
	var said atomic.Int32
	served := mcp.NewServer(&mcp.Implementation{Name: "broker"}, nil)
	for _, tool := range []string{"wait_for_turn", "propose"} {
		served.AddTool(&mcp.Tool{Name: tool, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			said.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "answered"}}}, nil
		})
	}
	serves := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return served }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	for name, c := range map[string]struct {
		token, tool, args string
		says              string
		said              int32
	}{
		"a wait":         {"good", "wait_for_turn", `{}`, "answered", 1},
		"an act":         {"good", "propose", `{}`, "Refused (unavailable)", 0},
		"an act's retry": {"good", "propose", `{"idempotencyKey":"k"}`, "answered", 1},
		"a bad token":    {"bad", "wait_for_turn", `{}`, "Refused (unauthorized)", 0},
	} {
		said.Store(0)
		var lost atomic.Bool
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer good" {
				http.Error(w, "no", http.StatusUnauthorized)
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil || strings.Contains(string(body), `"tools/call"`) && !lost.Swap(true) {
				panic(http.ErrAbortHandler) // the broker is killed
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			serves.ServeHTTP(w, r)
		}))
		here, there := mcp.NewInMemoryTransports()
		go mcpgateway.Forward(s.URL, c.token, http.DefaultTransport, true).Run(t.Context(), there) //nolint:errcheck // it ends with the test
		client, err := mcp.NewClient(&mcp.Implementation{Name: "assistant"}, nil).Connect(t.Context(), here, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.args)})
		if err != nil {
			t.Errorf("%s fails: %v", name, err)
		} else if text := res.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, c.says) || said.Load() != c.said {
			t.Errorf("%s is answered %q, and was said %d times", name, text, said.Load())
		}
		client.Close()
		s.Close()
	}
}

// An act that cannot be sent was not said, and the assistant is told.
func TestForwardUnreachable(t *testing.T) {
	t.Parallel()
	here, there := mcp.NewInMemoryTransports()
	go mcpgateway.Forward("http://"+testkit.FreeAddress(t), "good", http.DefaultTransport, true).Run(t.Context(), there) //nolint:errcheck // it ends with the test
	client, err := mcp.NewClient(&mcp.Implementation{Name: "assistant"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "propose", Arguments: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	if text := res.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "nothing was said") || !strings.Contains(text, "refused") {
		t.Errorf("the answer is %q", text)
	}
}

// An assistant that reads and decides in one step decides nothing.
func TestForwardCallsThatCross(t *testing.T) {
	t.Parallel()
	entered, goOn := make(chan struct{}), make(chan struct{})
	served := mcp.NewServer(&mcp.Implementation{Name: "broker"}, nil)
	answers := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "answered"}}}, nil
	}
	schema := json.RawMessage(`{"type":"object"}`)
	served.AddTool(&mcp.Tool{Name: "respond_to_negotiation", InputSchema: schema}, answers)
	served.AddTool(&mcp.Tool{Name: "get_negotiation", InputSchema: schema}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		entered <- struct{}{}
		<-goOn
		return answers(ctx, r)
	})
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return served }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	defer s.Close()
	here, there := mcp.NewInMemoryTransports()
	go mcpgateway.Forward(s.URL, "good", http.DefaultTransport, false).Run(t.Context(), there) //nolint:errcheck // it ends with the test
	client, err := mcp.NewClient(&mcp.Implementation{Name: "assistant"}, nil).Connect(t.Context(), here, nil)
	testkit.Must(t, err)
	defer client.Close()
	call := func(tool, args string) string {
		res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
		testkit.Must(t, err)
		return res.Content[0].(*mcp.TextContent).Text //nolint:forcetypeassert // it is
	}
	read := make(chan string)
	for args, want := range map[string]string{
		`{"negotiationId":"n","action":"accept"}`:                       "chain_conflict",
		`{"negotiationId":"n","action":"accept","referenceId":"p1"}`:    "answered",
		`{"negotiationId":"n","action":"offer","terms":{"price":1}}`:    "answered",
		`{"negotiationId":"another","action":"accept"}`:                 "answered",
		`{"negotiationId":"n","action":"COUNTER","terms":{"price":50}}`: "chain_conflict",
	} {
		go func() { read <- call("get_negotiation", `{"negotiationId":"n"}`) }()
		<-entered
		if said := call("respond_to_negotiation", args); !strings.Contains(said, want) {
			t.Errorf("%s is answered %s", args, said)
		}
		goOn <- struct{}{}
		<-read
	}
	if said := call("respond_to_negotiation", `{"negotiationId":"n","action":"accept"}`); said != "answered" {
		t.Errorf("what was read is answered %s", said)
	}
}
