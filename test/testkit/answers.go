package testkit

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
)

// Accepted is what an answer says of an act that must have been accepted.
func Accepted(t testing.TB, m *nats.Msg) api.Acceptance {
	t.Helper()
	var a api.Acceptance
	if err := json.Unmarshal(m.Data, &a); err != nil || !a.Accepted {
		t.Fatalf("not accepted: %.300s %v", m.Data, err)
	}
	return a
}

// Refused asserts that an answer is a refusal with this code.
func Refused(t testing.TB, m *nats.Msg, want session.Code) {
	t.Helper()
	if got := Code(t, m); got != want {
		t.Errorf("answered %q, want %q: %.300s", got, want, m.Data)
	}
}

// Code is the code of a refusal, "" if the answer is none. It asserts PROTOCOL.md §9: the
// micro error has the code's status, and nothing in the answer names what is inside the broker.
func Code(t testing.TB, m *nats.Msg) session.Code {
	t.Helper()
	var r struct {
		Accepted *bool
		Error    struct {
			Code    session.Code
			Message string
		}
	}
	if err := json.Unmarshal(m.Data, &r, json.MatchCaseInsensitiveNames(true)); err != nil || r.Accepted == nil || *r.Accepted || r.Error.Code.Status() == 0 {
		return ""
	}
	if got := m.Header.Get(api.ErrorCodeHeader); got != fmt.Sprint(r.Error.Code.Status()) {
		t.Errorf("%s has the error code %q", r.Error.Code, got)
	}
	for _, inside := range internals {
		if strings.Contains(string(m.Data), inside) || strings.Contains(m.Header.Get(api.ErrorHeader), inside) {
			t.Errorf("a refusal names %q: %s", inside, m.Data)
		}
	}
	return r.Error.Code
}

// internals are words that only the inside of the broker knows.
var internals = []string{
	"goroutine", "panic", "runtime error", "nats:", "nats.", "jetstream", "JetStream", "$JS", "$KV", "_INBOX", "ASP_", "stream", ".go:",
	"/root/", "/home/", "/tmp/", "performatives.", "Go api.", "json:", "jsontext", "Go struct", "unmarshal", "interface {}", "map[", "0x",
	"context deadline", " EOF", `"EOF`, // a key may have the letters, too
}

// Cut waits until the NATS server has closed a connection.
func Cut(t testing.TB, nc *nats.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	closed := nc.StatusChanged(nats.CLOSED)
	if nc.IsClosed() {
		return
	}
	select {
	case <-closed:
	case <-ctx.Done():
		t.Fatalf("the connection is still there after %s", Patience)
	}
}
