package mcpgateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/api"
	mcpgateway "github.com/parley-asp/parley/gateway/mcp"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// long is a caller of a broker that has one session, with so many entries. Its entries are no
// envelopes, so each has a fault.
type long struct {
	mcpgateway.Caller
	entries int
	read    *int
}

func (long) Agent() performatives.Agent { return cron }
func (long) Worker() string             { return "" }
func (long) ReadOnly() bool             { return false }

func (l long) Call(_ context.Context, verb string, request []byte) ([]byte, error) {
	switch verb {
	case api.BrokerInfo.Name:
		return json.Marshal(api.Broker{Dev: true})
	case api.SessionMessages.Name:
		var q api.ListMessages
		if err := json.Unmarshal(request, &q); err != nil {
			return nil, err
		}
		var page api.Messages
		for n := int(q.Since); n < l.entries && len(page.Messages) < q.Limit; n++ { //nolint:gosec // far below 2^63
			page.Messages = append(page.Messages, jsontext.Value("{}"))
			*l.read++
		}
		if next := q.Since + uint64(len(page.Messages)); next < uint64(l.entries) { //nolint:gosec // far below 2^63
			page.Next = &next
		}
		return json.Marshal(page)
	}
	return nil, session.Busy()
}

// verify_transcript reads sessions of at most 10,000 entries, and lists some of their faults.
func TestVerifyBounded(t *testing.T) {
	t.Parallel()
	for _, entries := range []int{10_000, 10_001, 1_000_000} {
		read := 0
		here, there := mcp.NewInMemoryTransports()
		go mcpgateway.New(mcpgateway.Options{AllTools: true, Caller: mcpgateway.Only(long{entries: entries, read: &read})}).Run(t.Context(), there) //nolint:errcheck // it ends with the test
		client, err := mcp.NewClient(&mcp.Implementation{Name: "assistant"}, nil).Connect(t.Context(), here, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "verify_transcript", Arguments: json.RawMessage(`{"sessionId":"019478a3-7b2c-7def-8a12-3456789abcde"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		text := res.Content[0].(*mcp.TextContent).Text //nolint:forcetypeassert // it panics
		switch {
		case entries > 10_000:
			if !res.IsError || !strings.Contains(text, "too_large") || !strings.Contains(text, "parley session verify") || read > 11_000 {
				t.Errorf("%d entries are answered %.300s, after %d were read", entries, text, read)
			}
		case res.IsError || !strings.Contains(text, fmt.Sprintf(`"entries":%d`, entries)) || strings.Count(text, `"rule"`) != 20:
			t.Errorf("%d entries are answered %.300s, with %d faults", entries, text, strings.Count(text, `"rule"`))
		}
		client.Close()
	}
}
