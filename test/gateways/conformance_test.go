//go:build gateways

package gateways

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"

	httpgateway "github.com/parley-asp/parley/gateway/http"
	gateway "github.com/parley-asp/parley/gateway/mcp"
	"github.com/parley-asp/parley/test/testkit"
)

// withToken adds a token, which the runner cannot send, for localhost only.
func withToken(t *testing.T, token string, next http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(httpgateway.Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		next.ServeHTTP(w, r)
	})))
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "127.0.0.1", "localhost", 1) + "/mcp"
}

// conforms runs scenarios of MCP's official runner, all of its active suite for none.
func conforms(t *testing.T, url string, scenarios ...string) {
	t.Helper()
	args := []string{"server", "--url", url}
	if len(scenarios) == 0 {
		printed := string(must(t)(node(t, nil, "node_modules/@modelcontextprotocol/conformance/dist/index.js", append(args, "--suite", "active", "--spec-version", "2025-11-25")...)))
		if !regexp.MustCompile(`Total: [1-9]\d* passed, 0 failed`).MatchString(printed) {
			t.Error(printed)
		}
		return
	}
	for _, s := range scenarios {
		t.Run(s, func(t *testing.T) {
			t.Parallel()
			printed := string(must(t)(node(t, nil, "node_modules/@modelcontextprotocol/conformance/dist/index.js", append(args, "--scenario", s)...)))
			if !strings.Contains(printed, "0 failed") {
				t.Error(printed)
			}
		})
	}
}

// MCP's runner is content with a server of the same gateway that has the fixtures which it wants.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	w, env := hosts(t)
	server := gateway.New(gateway.Options{Caller: gateway.Admitted, Change: wants})
	fixtures(server)
	h := gateway.Serve(gateway.HTTPOptions{Service: w.Server.Broker.Service}, server, true)
	conforms(t, withToken(t, tokenOf(env, "BUYER"), h))
}

// The broker's own /mcp passes those of its scenarios that need no fixture.
func TestMCPConformanceOfTheBroker(t *testing.T) {
	t.Parallel()
	w, env := hosts(t)
	at, err := url.Parse("http://" + w.HTTPAddr)
	testkit.Must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(at)
	conforms(t, withToken(t, tokenOf(env, "BUYER"), proxy), "server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection")
}
