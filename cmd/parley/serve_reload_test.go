package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// TestSIGHUP: the program reads its configuration again. What is wrong is logged, and changes nothing.
func TestSIGHUP(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	dir, listen := t.TempDir(), testkit.FreeAddress(t)
	write := func(name, format string, args ...any) {
		t.Helper()
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, format, args...), 0o600))
	}
	configure := func(more string) { write("parley.yaml", "dev: true\nhttp: \"\"\nlisten: %s\n%s", listen, more) }
	configure("limit-schemas: 1\nescalations: rules.yaml\n")
	write("rules.yaml", "organisations: {}\n")

	parley := exec.CommandContext(ctx, "parley", "serve", "--config", "parley.yaml", "--limit-streams", "9")
	parley.Dir = dir
	out, err := parley.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, parley.Start())
	lines := bufio.NewScanner(out)
	says := func(what string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("the broker does not say %q: %v", what, lines.Err())
	}
	hangup := func(what ...string) {
		t.Helper()
		testkit.Must(t, parley.Process.Signal(syscall.SIGHUP))
		for _, line := range what {
			says(line)
		}
	}
	says("is serving")
	c, err := client.Connect(ctx, "nats://"+listen, "agent://acme.com/a", client.Unsigned())
	testkit.Must(t, err)
	defer c.Close()
	put := func(n int) error {
		_, err := c.PutSchema(ctx, fmt.Sprintf("terms-%d", n), map[string]any{"type": "object"})
		return err
	}
	full := func(n int) {
		t.Helper()
		if err := put(n); !errors.Is(err, client.Refused(session.TooLarge)) {
			t.Errorf("schema %d: %v, want %s", n, err, session.TooLarge)
		}
	}
	const again = "SIGHUP: configuration and certificates are read again"
	testkit.Must(t, put(1))
	full(2)
	configure("limit-schemas: 2\nlog-level: info\nescalations: rules.yaml\n")
	hangup(again + "; changed: limit-schemas, log-level")
	hangup(again + "; nothing that counts without a restart has changed since it was read last")
	testkit.Must(t, put(2))
	full(3)

	configure("limit-shcemas: 3\n")
	hangup("parley.yaml:4: limit-shcemas: there is no such key; did you mean limit-schemas?")
	full(3)
	configure("limit-schemas: 3\nescalations: rules.yaml\n")
	write("rules.yaml", "organisations: {acme.com: {quorom: 2}}\n")
	hangup("field quorom not found")
	full(3)
	write("rules.yaml", "organisations:\n  acme.com:") // somebody is writing it
	hangup("rules.yaml: line 2: acme.com has no value")
	write("rules.yaml", "")
	hangup("rules.yaml: the file is empty")
	full(3)
	write("rules.yaml", "organisations: {acme.com: {groups: {board: ['human://acme.com/boss']}}}\n")
	configure("limit-schemas: 3\nlimit-streams: 10\nescalations: rules.yaml\nsync: 1s\nhttp-origins: [https://acme.com]\n")
	hangup("SIGHUP: restart needed for: http-origins, sync", again+"; changed: escalations, limit-schemas, log-level")
	testkit.Must(t, put(3))

	testkit.Must(t, parley.Process.Signal(syscall.SIGTERM))
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if !strings.HasSuffix(last, " has stopped") {
		t.Errorf("the last line is %q", last)
	}
	testkit.Must(t, parley.Wait())
}
