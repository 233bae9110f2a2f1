package server_test

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/test/testkit"
)

// A broker that stops waits for nobody who waits for a turn, by HTTP or MCP.
func TestStopEndsWaits(t *testing.T) {
	t.Parallel()
	for path, wait := range map[string]string{
		"/v1/asp/turns/wait": `{"seconds":50}`,
		"/mcp":               `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait_for_turn","arguments":{"seconds":50}}}`,
	} {
		w := testkit.NewHosted(t, testkit.Options{})
		sent, answered := make(chan struct{}, 1), make(chan struct{})
		ctx := httptrace.WithClientTrace(w.Ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent <- struct{}{} }})
		go func() {
			defer close(answered)
			waits(ctx, "http://"+w.HTTPAddr+path, w.Tokens[testkit.Cron], wait)
		}()
		<-sent
		began := time.Now()
		w.Down()
		<-answered
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s held the broker up for %s", path, took)
		}
	}
}

// waits sends a request, whatever it is answered.
func waits(ctx context.Context, url, token, body string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	if answer, err := http.DefaultClient.Do(r); err == nil {
		answer.Body.Close()
	}
}
