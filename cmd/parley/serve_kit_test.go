package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A test kit starts a broker on free ports, is told where it is, and moves its clock: deadlines end what they
// end. What is no order is answered with an error, and moves nothing.
func TestServeForKits(t *testing.T) {
	t.Parallel()
	orders, tell := io.Pipe()
	hear, answers := io.Pipe()
	t.Cleanup(func() { tell.Close() })
	cmd := rootCommand()
	cmd.SetArgs([]string{"serve", "--dev", "--ready-json", "--test-clock", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data")})
	cmd.SetIn(orders)
	cmd.SetOut(answers)
	cmd.SetErr(io.Discard)
	served := make(chan error, 1)
	go func() { served <- cmd.ExecuteContext(t.Context()) }()
	t.Cleanup(func() { testkit.Must(t, <-served) })
	lines := bufio.NewScanner(hear)
	next := func(into any) {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("no more answers", lines.Err())
		}
		testkit.Must(t, json.Unmarshal(lines.Bytes(), into))
	}
	var at ready
	next(&at)
	if at.Key == "" || at.PID == 0 || !strings.HasPrefix(at.NATS, "nats://127.0.0.1:") {
		t.Fatalf("it is ready at %+v", at)
	}
	call := func(method, path, body string, into any) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, at.HTTP+"/v1/asp"+path, strings.NewReader(body))
		testkit.Must(t, err)
		r.Header.Set("Authorization", "Bearer agent://acme.com/buyer")
		r.Header.Set("Content-Type", "application/json")
		reply, err := http.DefaultClient.Do(r)
		testkit.Must(t, err)
		defer reply.Body.Close()
		testkit.Must(t, json.UnmarshalRead(reply.Body, into))
	}
	var opened api.Acceptance
	call(http.MethodPost, "/sessions", `{"with":["agent://widgets.co/seller"],"purpose":"cups"}`, &opened)
	state := func() (v api.SessionView) {
		call(http.MethodGet, "/sessions/"+string(opened.Session), "", &v)
		return v
	}
	advance := func(order string) (m moved) { fmt.Fprintln(tell, order); next(&m); return m } //nolint:errcheck // there is no answer then
	for _, order := range []string{"advance", "advance -1h", "advance 9000h", "back 1h", ""} {
		if m := advance(order); m.Error == "" || m.Now != "" {
			t.Errorf("%q is answered %+v", order, m)
		}
	}
	first := advance("advance 23h")
	if v := state(); first.Now == "" || v.State != session.Invited {
		t.Errorf("after 23 h, at %s, it is %s", first.Now, v.State)
	}
	advance("advance 2h")
	if v := state(); v.State != session.Failed || v.Closing != session.InvitationTimeout {
		t.Errorf("after 25 h it is %s, %s", v.State, v.Closing)
	}
	call(http.MethodPost, "/sessions", `{"with":["agent://widgets.co/seller"],"purpose":"cups"}`, &opened)
	if opened.AcceptedAt < first.Now {
		t.Errorf("what comes then is accepted at %s, before %s", opened.AcceptedAt, first.Now)
	}
}

// The clock is for tests: not where anybody has to log in.
func TestClockOfTestsOnly(t *testing.T) {
	t.Parallel()
	cmd := rootCommand()
	cmd.SetArgs([]string{"serve", "--test-clock", "--data", filepath.Join(t.TempDir(), "data")})
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--dev") {
		t.Errorf("without --dev it is answered %v", err)
	}
}
