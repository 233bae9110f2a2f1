package server_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// OPERATIONS.md, Monitoring: the probes of --monitor. A broker that reaches no store lives, but is not ready.
func TestMonitor(t *testing.T) {
	t.Parallel()
	s, err := server.Start(t.Context(), server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1", HTTP: "127.0.0.1:0", Monitor: "127.0.0.1:0"})
	testkit.Must(t, err)
	t.Cleanup(func() { s.Close(t.Context()) })
	get := func(url string) (int, string) {
		answer, err := http.Get(url)
		testkit.Must(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		testkit.Must(t, err)
		return answer.StatusCode, string(body)
	}
	base := "http://" + s.MonitorAddr
	for _, path := range []string{"/healthz", "/startupz", "/readyz"} {
		if status, body := get(base + path); status != http.StatusOK || body != `{"status":"ok"}`+"\n" {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body := get("http://" + s.HTTPAddr + "/healthz"); status != http.StatusOK || !strings.HasPrefix(body, "ok\n") {
		t.Errorf("/healthz of HTTP: %d %s", status, body)
	}
	if status, _ := get(base + "/version"); status != http.StatusNotFound {
		t.Errorf("the monitor serves /version: %d", status)
	}
	s.Broker.Options.Conn.Close()
	testkit.Eventually(t, "the broker is not ready", func() bool {
		status, body := get(base + "/readyz")
		return status == http.StatusServiceUnavailable && strings.HasPrefix(body, `{"reason":"`) && strings.Count(body, "\n") == 1
	})
	if status, _ := get(base + "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz while not ready: %d", status)
	}
}

func TestMonitorOfDevIsLocal(t *testing.T) {
	t.Parallel()
	o := server.Options{Data: t.TempDir(), Dev: true, Monitor: "0.0.0.0:0"}
	if _, err := server.Start(t.Context(), o); !errors.Is(err, server.ErrNotLoopback) {
		t.Errorf("with --dev on all interfaces: %v", err)
	}
}
