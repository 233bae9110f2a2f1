package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-asp/parley/test/testkit"
)

// With --log-json every line on standard error is JSON, from the start to the end, and names the broker.
func TestLogJSON(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	run := func(args ...string) (*exec.Cmd, *bufio.Scanner) {
		t.Helper()
		parley := exec.CommandContext(ctx, "parley", append([]string{"serve", "--log-json", "--log-level", "info"}, args...)...)
		out, err := parley.StderrPipe()
		testkit.Must(t, err)
		testkit.Must(t, parley.Start())
		return parley, bufio.NewScanner(out)
	}
	var last map[string]any
	next := func(lines *bufio.Scanner) error {
		t.Helper()
		if !lines.Scan() {
			return io.EOF
		}
		last = nil
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			t.Errorf("%q: %v", lines.Text(), err)
		}
		return nil
	}
	data := filepath.Join(t.TempDir(), "data")
	parley, lines := run("--data", data, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	for last["msg"] != "parley is serving" {
		testkit.Must(t, next(lines))
		if last["logger"] == "nats" && last["broker"] == nil {
			t.Errorf("%v does not name the broker", last)
		}
	}
	for _, field := range []string{"version", "nats", "http", "broker", "host", "data", "key", "operator"} {
		if value, is := last[field].(string); !is || value == "" {
			t.Errorf("%s is missing in %v", field, last)
		}
	}
	id := last["broker"]
	second, words := run("--data", data, "--listen", "127.0.0.1:0", "--http", "")
	var ends map[string]any
	for next(words) == nil {
		ends = last
	}
	if err := second.Wait(); err == nil || ends["level"] != "error" || ends["status"] != 1.0 {
		t.Errorf("a second broker on the data: %v, %v", err, ends)
	}
	testkit.Must(t, parley.Process.Signal(syscall.SIGTERM))
	for next(lines) == nil {
		if last["broker"] != id {
			t.Errorf("%v does not name the broker", last)
		}
	}
	if msg, _ := last["msg"].(string); last["broker"] != id || !strings.HasSuffix(msg, " has stopped") {
		t.Errorf("the last line of broker %v is %v", id, last)
	}
	testkit.Must(t, parley.Wait())
}
