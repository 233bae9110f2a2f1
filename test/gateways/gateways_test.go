//go:build gateways

// Package gateways holds the gateways to other people's clients, servers and suites, which
// .ci/gateways installs, and runs this.
package gateways

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/parley-asp/parley/test/testkit"
)

var installed = flag.String("installed", "", "the directory in which .ci/gateways has installed Python and Node packages")

// within is how long a program may take.
const within = 2 * testkit.Patience

// node runs a program of the installed packages, or one that lies beside them.
func node(t *testing.T, env []string, program string, args ...string) (printed []byte, err error) {
	t.Helper()
	return run(t, env, filepath.Join(*installed, "node_modules", ".bin", "node"), append([]string{filepath.Join(*installed, program)}, args...)...)
}

// python runs a program of this directory.
func python(t *testing.T, env []string, program string, args ...string) (printed []byte, err error) {
	t.Helper()
	return run(t, env, filepath.Join(*installed, "python", "bin", "python"), append([]string{program}, args...)...)
}

// run runs a program; what it printed as faults goes to the test's log if it fails.
func run(t *testing.T, env []string, program string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var out, faults bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(*installed, "node_modules", ".bin")+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir())
	cmd.Stdout, cmd.Stderr = &out, &faults
	err := cmd.Run()
	if err != nil {
		t.Logf("%s %v: %v\n%s%s", filepath.Base(program), args, err, out.Bytes(), faults.Bytes())
	}
	return out.Bytes(), err
}

// must is what a program printed that must succeed.
func must(t *testing.T) func([]byte, error) []byte {
	return func(printed []byte, err error) []byte {
		t.Helper()
		testkit.Must(t, err)
		return printed
	}
}
