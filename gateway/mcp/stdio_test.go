package mcpgateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpgateway "github.com/parley-asp/parley/gateway/mcp"
	"github.com/parley-asp/parley/test/testkit"
)

// Over stdio a line that is no message is answered, and so is a request that the gateway refuses as a whole: what else is
// asked meanwhile goes on.
func TestStdioRefuses(t *testing.T) {
	t.Parallel()
	served := mcp.NewServer(&mcp.Implementation{Name: "broker"}, nil)
	served.AddResource(&mcp.Resource{URI: "parley://one", Name: "one"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
	asked, go_ := make(chan bool), make(chan bool)
	served.AddTool(&mcp.Tool{Name: "wait_for_turn", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		close(asked)
		<-go_
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "your turn"}}}, nil
	})
	serves := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return served }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
		case bytes.Contains(body, []byte("too much")):
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		case bytes.Contains(body, []byte("too often")):
			w.Header().Set("Retry-After", "7")
			http.Error(w, "too many", http.StatusTooManyRequests)
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			serves.ServeHTTP(w, r)
		}
	}))
	defer s.Close()
	in, lines := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- mcpgateway.Stdio(t.Context(), mcpgateway.Forward(s.URL, "good", http.DefaultTransport, true), in, out)
		out.Close()
	}()
	read := bufio.NewReader(answers)
	asks := func(line, want string) {
		t.Helper()
		_, err := io.WriteString(lines, line+"\n")
		testkit.Must(t, err)
		if want == "" {
			return
		}
		if got, err := read.ReadString('\n'); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s is answered %s (%v), want %s", line, got, err, want)
		}
	}
	asks(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, `"id":1`)
	asks(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "")
	asks(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait_for_turn","arguments":{}}}`, "")
	<-asked
	asks(`{broken`, `-32700`)
	asks(``, "")
	for _, line := range []string{`[]`, `5`, `[5]`, `[{"jsonrpc":"2.0","id":9,"method":"ping"}]`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`} {
		asks(line, `-32600`)
	}
	asks(`{"jsonrpc":"2.0","id":3,"method":"resources/list"}`, `parley://one`)
	asks(`{"jsonrpc":"2.0","id":4,"method":"resources/list","params":null}`, `parley://one`)
	asks(`{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"parley://none"}}`, `"message":"Resource not found"`)
	asks(`{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"parley://too often"}}`, `"message":"rate_limited: `)
	asks(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"list_sessions","arguments":{"status":"too much"}}}`, `too_large`)
	asks(`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"propose","arguments":{"subject":"too often"}}}`, `7000`)
	close(go_)
	if got, err := read.ReadString('\n'); err != nil || !strings.Contains(got, "your turn") {
		t.Errorf("the wait ends with %s (%v)", got, err)
	}
	lines.Close()
	testkit.Must(t, <-ended)
}
