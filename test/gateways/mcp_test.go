//go:build gateways

package gateways

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	gateway "github.com/parley-asp/parley/gateway/mcp"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	buyer  = performatives.Agent("agent://acme.com/buyer")
	vendor = performatives.Agent("agent://widgets.co/vendor")
)

// hosts is a broker with a hosted buyer and vendor, and their tokens in the environment.
func hosts(t *testing.T) (w *testkit.World, env []string) {
	t.Helper()
	w = testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0"})
	env = []string{"URL=http://" + w.HTTPAddr + gateway.Path + gateway.AllTools, "VENDOR_URI=" + string(vendor)}
	for name, a := range map[string]performatives.Agent{"BUYER": buyer, "VENDOR": vendor} {
		_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: a})
		testkit.Must(t, err)
		token, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: a})
		testkit.Must(t, err)
		env = append(env, name+"="+token.Token)
	}
	return w, env
}

// tokenOf finds a token in the environment.
func tokenOf(env []string, name string) string {
	for _, e := range env {
		if token, is := strings.CutPrefix(e, name+"="); is {
			return token
		}
	}
	return ""
}

// The TypeScript and the Python SDK of MCP play a whole session each, and hold every result to
// its tool's schema.
func TestMCPClients(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*testing.T, []string) ([]byte, error){
		"typescript": func(t *testing.T, env []string) ([]byte, error) { return node(t, env, "mcp_session.mjs") },
		"python":     func(t *testing.T, env []string) ([]byte, error) { return python(t, env, "mcp_session.py") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, env := hosts(t)
			var played struct {
				Entries, Listed int
			}
			printed := must(t)(play(t, env))
			testkit.Must(t, json.Unmarshal(printed, &played))
			if played.Entries != 5 || played.Listed != 1 {
				t.Errorf("it played %s", printed)
			}
		})
	}
}

// MCP Inspector's command line lists and calls.
func TestMCPInspector(t *testing.T) {
	t.Parallel()
	w, env := hosts(t)
	token := tokenOf(env, "BUYER")
	inspect := func(args ...string) string {
		args = append([]string{"--cli", "http://" + w.HTTPAddr + gateway.Path + gateway.AllTools, "--transport", "http", "--header", "Authorization: Bearer " + token}, args...)
		return string(must(t)(node(t, env, "node_modules/.bin/mcp-inspector", args...)))
	}
	if listed := inspect("--method", "tools/list"); !strings.Contains(listed, `"respond_to_negotiation"`) {
		t.Errorf("it lists %s", listed)
	}
	if found := inspect("--method", "tools/call", "--tool-name", "find_agents", "--tool-arg", "query=vendor"); !strings.Contains(found, string(vendor)) {
		t.Errorf("it finds %s", found)
	}
	if read := inspect("--method", "resources/read", "--uri", "parley://schema/PROPOSE"); !strings.Contains(read, "proposalId") {
		t.Errorf("it reads %s", read)
	}
}

// GATEWAYS.md G9: what the five tools cost a model, their definitions and a purchase with three offers.
func TestMCPTokens(t *testing.T) {
	t.Parallel()
	_, env := hosts(t)
	type side struct{ Calls, Bytes, Tokens int }
	var spent struct {
		State         string
		Definitions   int
		Buyer, Vendor side
	}
	printed := must(t)(node(t, env, "mcp_kit.mjs"))
	testkit.Must(t, json.Unmarshal(printed, &spent))
	t.Logf("%s", printed)
	if spent.Definitions == 0 || spent.Definitions > 1500 {
		t.Errorf("the definitions have %d tokens, want at most 1500", spent.Definitions)
	}
	for _, s := range []side{spent.Buyer, spent.Vendor} {
		if s.Calls == 0 || s.Calls > 6 || s.Bytes > 12<<10 || s.Tokens > 4500 {
			t.Errorf("a purchase takes a side %+v", s)
		}
	}
}
